"""Configuration files of MCP clients: locate them, read them, and change as few bytes as possible.

Used by connect and import.

Never here: servers.yaml (config), printing.
"""
