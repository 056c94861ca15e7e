"""A server, built on the SDK, with everything that the suite's scenarios require."""
