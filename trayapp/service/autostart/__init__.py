"""Start at login, by the mechanism of each platform."""
