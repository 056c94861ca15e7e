"""Tests of the parts of the gateway process, run in the test process."""
