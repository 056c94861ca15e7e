"""The official conformance suite, direct and through the gateway. Never here: what the tests of single rooms prove."""
