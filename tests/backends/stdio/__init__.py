"""Tests of trayapp/backends/stdio."""
