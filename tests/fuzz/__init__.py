"""Anything at all, at every door: bounded in the test run, for as long as one likes with atheris."""
