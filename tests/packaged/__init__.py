"""Tests of the packaged programs."""
