"""Run the gateway as a process: servers.yaml, logs, garbage, permissions, tasks, and the change to a newer program.

Never here: routing, sessions.
"""
