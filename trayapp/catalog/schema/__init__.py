"""Schemas of tools as any client can take them, and arguments checked against them."""
