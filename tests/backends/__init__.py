"""Tests of trayapp/backends."""
