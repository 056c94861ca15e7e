"""Listings, approvals and the catalog, and the exposure of it that one kind of session sees.

Never here: connections, sessions, requests.
"""
