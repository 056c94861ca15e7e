"""The gateway as a process: servers.yaml and its saves, private folders, and tasks behind boundaries.

Never here: routing, sessions.
"""
