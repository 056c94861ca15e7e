"""servers.yaml: where it is stored, what it contains, and how it is edited.

Never here: processes, sockets, MCP.
"""
