"""multi-mcp: one local gateway for all MCP servers. This module holds the version. Never here: imports."""

__version__ = "0.1.0"
