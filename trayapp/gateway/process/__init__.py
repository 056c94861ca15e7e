"""What the gateway needs as a process: servers.yaml as it is saved, private folders, and tasks behind boundaries.

Never here: routing, sessions.
"""
