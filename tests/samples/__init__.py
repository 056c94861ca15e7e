"""Tests of trayapp/samples."""
