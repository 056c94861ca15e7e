"""Fuzz tests of all input from outside: bounded in the test run, and for as long as you like with Atheris."""
