"""The signs of orders in a tool's text: a table, as broad as people write, by what they point to.

Never here: weighing them together (orders).
"""

from __future__ import annotations

from trayapp.catalog.signs import authority, languages, leaks, others, secrecy, secrets
from trayapp.catalog.signs.address import ADDRESSES
from trayapp.catalog.signs.sign import Sign
from trayapp.catalog.signs.sinks import SINKS

# What a description says to a model rather than of a tool.
SIGNS: tuple[Sign, ...] = (
    *secrecy.SIGNS,
    *authority.SIGNS,
    *secrets.SIGNS,
    *leaks.SIGNS,
    *others.SIGNS,
    *languages.SIGNS,
)

__all__ = ["ADDRESSES", "SIGNS", "SINKS", "Sign"]
