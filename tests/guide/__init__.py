"""Tests of the README, the guide and packaging/dev.py."""
