"""Kills and other faults against real processes."""
