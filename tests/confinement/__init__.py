"""Tests of confined server programs, with programs that try to get out."""
