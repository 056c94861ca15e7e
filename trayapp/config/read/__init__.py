"""The reader of servers.yaml, which turns its text into a Config and reports every problem with its line."""
