"""The fixture for a real gateway, which has its own home in each test."""

from __future__ import annotations

from tests.e2e.conftest import gateway

__all__ = ["gateway"]
