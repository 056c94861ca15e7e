"""Tests that kill real processes and cause other faults."""
