"""Detection of system sleep and network changes."""
