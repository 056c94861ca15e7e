"""Detection of system sleep and network changes, by witnesses: each reports the signs that it can see."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

OnWake = Callable[[str], None]
Witness = Callable[[OnWake], Coroutine[Any, Any, None]]  # reports the reason for each sign; returns if it cannot watch
