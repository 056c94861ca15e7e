"""Listings, approvals, the catalog, and its exposure to each kind of session.

Never here: connections, sessions, requests.
"""
