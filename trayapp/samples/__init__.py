"""MCP servers that ship with multi-mcp, each a program of its own.

Never here: imports of the rest of multi-mcp.
"""
