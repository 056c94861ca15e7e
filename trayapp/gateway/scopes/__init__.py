"""Servers that run for the user, a project or a single session, and the views through which sessions see them.

Never here: how one server runs (backends), requests.
"""
