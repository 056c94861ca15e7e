"""Configuration layers: imports below servers.yaml, a trusted project's file above it."""
