"""All known tools, prompts and resources: their names, filters, approvals, cache and search.

Never here: connections.
"""
