"""Tests of trayapp/catalog/schema."""
