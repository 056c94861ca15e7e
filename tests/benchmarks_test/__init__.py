"""Tests of the code behind the benchmarks. The benchmarks themselves are run by hand."""
