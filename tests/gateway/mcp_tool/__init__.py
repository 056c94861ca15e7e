"""In-process tests of trayapp/gateway/mcp_tool."""
