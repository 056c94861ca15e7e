"""Who reports that the machine slept or its network changed. Never here: what is done about it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

OnWake = Callable[[str], None]
Witness = Callable[[OnWake], Coroutine[Any, Any, None]]  # reports each sign, with the reason; returns when it cannot
