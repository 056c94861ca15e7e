"""Tests of trayapp/config."""
