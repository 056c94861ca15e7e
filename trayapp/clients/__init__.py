"""Configuration files of MCP clients: locate them, read them, and change as few bytes as possible.

Never here: servers.yaml (config), printing.
"""
