"""Tests of confined server programs, including programs that try to escape."""
