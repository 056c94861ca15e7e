"""Which servers run for whom: the user's, a project's, a session's own; and how a session sees them.

Never here: how one server runs (backends), requests.
"""
