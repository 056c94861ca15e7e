"""What there is, and what one kind of session sees of it: listings, approvals, the catalog, its exposures.

Never here: connections, sessions, requests.
"""
