"""Files laid over each other: imports below servers.yaml, a trusted project's file above it."""
