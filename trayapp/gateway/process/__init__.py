"""Being a process: files that are followed, logs, memory, permissions, tasks, making room for a newer program.

Never here: routing, sessions.
"""
