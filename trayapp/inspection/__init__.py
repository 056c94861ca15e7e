"""What a server says of itself, looked over: text that hides from people, and text that reads like orders to a model.

Pure functions over one definition or text; no model, no network, no learned weights.
Never here: what becomes of a finding (gateway/exposure/approvals), what was approved (catalog/pins).
"""
