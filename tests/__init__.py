"""The tests of multi-mcp. Each folder tests/<room> mirrors trayapp/<room>."""
