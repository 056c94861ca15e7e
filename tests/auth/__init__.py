"""Tests of the room auth."""
