"""The gateway seen from outside: its command line, starting and stopping it.

Never here: MCP.
"""
