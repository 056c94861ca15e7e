"""Tests of the gateway process's parts, in this process."""
