"""The commands of packaging/dev.py, and the steps that they consist of."""
