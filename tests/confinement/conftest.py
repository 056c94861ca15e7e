"""The fixture for a real gateway with its own home."""

from __future__ import annotations

from tests.e2e.conftest import gateway

__all__ = ["gateway"]
