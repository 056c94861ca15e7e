"""multi-mcp: one local gateway for all MCP servers of a user, and the tray app that supervises it.

Never here: anything that takes time to import.
"""

__version__ = "0.1.0"
