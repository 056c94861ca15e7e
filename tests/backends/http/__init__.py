"""Tests of trayapp/backends/http."""
