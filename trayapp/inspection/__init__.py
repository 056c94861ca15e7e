"""Inspection of what a server sends: text that hides from people, and text that reads like orders to a model.

Pure functions over one definition or text; no model, no network, no learned weights.
Never here: how a finding is acted on (gateway/exposure/approvals), what was approved (catalog/approval_store).
"""
