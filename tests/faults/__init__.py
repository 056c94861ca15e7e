"""Kills and other faults against real processes. Never here: fakes."""
