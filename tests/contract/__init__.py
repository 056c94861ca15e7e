"""One test suite for all transports."""
