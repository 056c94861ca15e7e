"""MCP servers at an address: Streamable HTTP and legacy SSE.

Never here: anything imported with the package; its modules load httpx2 (see open_transport).
"""
