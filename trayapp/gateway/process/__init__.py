"""Being a process: servers.yaml, logs, memory, permissions, tasks, and the change to a newer program.

Never here: routing, sessions.
"""
