"""The official conformance suite, direct and through the gateway."""
