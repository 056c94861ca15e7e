"""The official conformance suite, run directly against a server and through the gateway."""
