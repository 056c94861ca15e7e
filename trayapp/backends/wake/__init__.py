"""Noticing that the machine slept or its network changed."""
