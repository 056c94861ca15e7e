"""Real processes from end to end."""
