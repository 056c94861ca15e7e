"""Tests of README and guide."""
