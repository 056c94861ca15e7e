"""Inspection of what a server sends, for text hidden from people and text that reads like orders to a model.

Pure functions of one definition or text, without a model, network or learned weights.
Never here: how a finding is acted on (gateway/exposure/approvals), what was approved (catalog/approval_store).
"""
