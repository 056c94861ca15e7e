"""The history: rows without secrets, a bounded file, written without delaying calls."""
