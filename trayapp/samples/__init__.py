"""MCP servers that ship with multi-mcp, each its own program.

Never here: imports of the rest of multi-mcp.
"""
