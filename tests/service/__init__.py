"""Tests of trayapp/service."""
