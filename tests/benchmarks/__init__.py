"""Benchmarks of multi-mcp's speed and size, compared with direct connections to servers."""
