"""Tests of trayapp/model."""
