"""Servers that run for the user, a project or a single session, and the sessions' views of them.

Never here: how one server runs (backends), requests.
"""
