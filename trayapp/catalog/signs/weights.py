"""What the signs of an order weigh beside its wording, and how the table of weights is read: learned by
packaging/devtools/learn_wording.py.

Never here: anything written by hand.
"""

from __future__ import annotations

MASK = 131071  # places in the table, less one
SCALE = 0.03415  # of a byte of it
BIAS = -0.833
BY_SIGN = {
    "asked": 0.32,
    "noted": 0.27,
    "orders.conceal": 0.26,
    "orders.deceive": 0.39,
    "orders.execute": 0.46,
    "orders.exfiltrate": 0.25,
    "orders.markup": 0.10,
    "orders.override": 0.25,
    "orders.secrets": 0.39,
    "orders.standing": 0.20,
    "orders.tools": 0.31,
    "sure": 0.37,
}
