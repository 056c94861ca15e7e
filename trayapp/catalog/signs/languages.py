"""Signs of orders in other languages than English: to ignore instructions, to conceal.

Never here: English, weighing the signs (orders).
"""

from __future__ import annotations

from trayapp.catalog.signs.sign import Sign

SIGNS: tuple[Sign, ...] = ()
