"""A real gateway, with its own home for each test."""

from __future__ import annotations

from tests.e2e.conftest import gateway

__all__ = ["gateway"]
