"""Configuration layers. Imports are below servers.yaml, and a trusted project's file is above it."""
