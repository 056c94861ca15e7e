"""Tests of servers' programs that are confined, with programs that try to get out."""
