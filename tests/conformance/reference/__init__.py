"""A server with everything that the suite's scenarios ask for, on the SDK."""
