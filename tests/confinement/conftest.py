"""A real gateway, with its own home for each test. Never here: worlds to get out into (world.py)."""

from __future__ import annotations

from tests.e2e.conftest import gateway

__all__ = ["gateway"]
