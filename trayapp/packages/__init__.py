"""Exact packages: the version and content that a server runs, locked at its first start and kept until an update.

Never here: asking the user, connecting to the server.
"""
