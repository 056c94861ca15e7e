"""The gateway from outside: its command line, starting it and stopping it.

Never here: MCP.
"""
