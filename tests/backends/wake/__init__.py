"""Tests of trayapp/backends/wake."""
