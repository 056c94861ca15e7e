"""The commands of packaging/dev.py, in steps."""
