"""The type of a witness, which reports that the machine slept or its network changed."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

OnWake = Callable[[str], None]
Witness = Callable[[OnWake], Coroutine[Any, Any, None]]  # reports each sign, with the reason; returns when it cannot
