"""From the text of servers.yaml to a Config, every problem noted with its line."""
