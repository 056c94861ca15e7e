"""MCP servers that ship with multi-mcp. Each is a separate program.

Never here: imports of the rest of multi-mcp.
"""
