"""Tests of trayapp/history."""
