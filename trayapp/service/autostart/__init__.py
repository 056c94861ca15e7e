"""Start at login, on each desktop in its own way."""
