"""A real gateway, in a home of its own for each test. Never here: worlds to get out into (world.py)."""

from __future__ import annotations

from tests.e2e.conftest import gateway

__all__ = ["gateway"]
