"""The tests of multi-mcp; tests/<room> mirrors trayapp/<room>."""
