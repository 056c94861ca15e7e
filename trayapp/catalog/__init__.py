"""All known tools, prompts and resources: cache, names, merge.

Never here: connections.
"""
