"""The gateway from outside: start it, supervise it, connect to it, and check the machine that it runs on.

Never here: MCP.
"""
