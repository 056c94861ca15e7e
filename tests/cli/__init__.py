"""Tests of trayapp/cli."""
