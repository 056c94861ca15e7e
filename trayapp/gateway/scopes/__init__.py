"""Which servers run for whom (the user, a project, a single session), and how a session sees them.

Never here: how one server runs (backends), requests.
"""
