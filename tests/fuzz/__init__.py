"""Fuzz tests of all input from outside: bounded in the test run, unbounded with Atheris."""
