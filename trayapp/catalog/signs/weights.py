"""What the signs of an order weigh beside its wording, and how the table of weights is read: learned by
packaging/devtools/learn_wording.py.

Never here: anything written by hand.
"""

from __future__ import annotations

MASK = 131071  # places in the table, less one
SCALE = 0.03410  # of a byte of it
BIAS = -0.836
BY_SIGN = {
    "asked": 0.32,
    "noted": 0.26,
    "orders.conceal": 0.26,
    "orders.deceive": 0.39,
    "orders.execute": 0.45,
    "orders.exfiltrate": 0.25,
    "orders.markup": 0.09,
    "orders.override": 0.24,
    "orders.secrets": 0.39,
    "orders.standing": 0.21,
    "orders.tools": 0.31,
    "sure": 0.37,
}
