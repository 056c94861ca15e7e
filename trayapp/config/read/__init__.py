"""Reading servers.yaml: from its text to a Config, with every problem reported by its line."""
