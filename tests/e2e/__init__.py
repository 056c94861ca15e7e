"""End-to-end tests of real processes."""
