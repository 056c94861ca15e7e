"""The history: rows without secrets, a bounded file, writing beside the calls."""
