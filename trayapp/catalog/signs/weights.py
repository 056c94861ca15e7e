"""What the signs of an order weigh beside its wording, and how the table of weights is read: learned by
packaging/devtools/learn_wording.py.

Never here: anything written by hand.
"""

from __future__ import annotations

MASK = 131071  # places in the table, less one
SCALE = 0.03491  # of a byte of it
BIAS = -0.989
BY_SIGN = {
    "asked": 0.39,
    "noted": 0.27,
    "orders.conceal": 0.29,
    "orders.deceive": 0.40,
    "orders.execute": 0.47,
    "orders.exfiltrate": 0.27,
    "orders.markup": 0.09,
    "orders.override": 0.27,
    "orders.secrets": 0.41,
    "orders.standing": 0.21,
    "orders.tools": 0.31,
    "sure": 0.39,
}
