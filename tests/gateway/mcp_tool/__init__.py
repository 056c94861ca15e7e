"""Tests of trayapp/gateway/mcp_tool, in this process."""
