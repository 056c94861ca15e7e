"""Tests of what the benchmarks reckon with; the benchmarks themselves are run by hand."""
