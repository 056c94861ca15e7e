"""The program as it is shipped, proven."""
