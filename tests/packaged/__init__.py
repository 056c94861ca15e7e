"""The program as it is shipped, proven. Never here: what the program does in detail (every other room)."""
