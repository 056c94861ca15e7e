"""Exact packages: the version and content that a server runs, locked when first started, verified before each start.

Never here: asking the user, talking to the server.
"""
