"""Tests of trayapp/auth."""
