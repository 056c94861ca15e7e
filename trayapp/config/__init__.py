"""servers.yaml: where it lies, what it says, and how it is edited.

Never here: processes, sockets, MCP.
"""
