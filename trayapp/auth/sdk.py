"""The SDK as a whole, loaded when a server or a sign-in first needs a part of it.

Never here: what is used of it.
"""

from __future__ import annotations


def load_sdk() -> None:
    """Import the package `mcp`, in a thread: it takes half a second, while everybody else is served.

    Call it before importing modules that import parts of the SDK. Those parts import each other: two threads that enter
    them from different ends at once would get one of them half done. Here the second one waits for the first.
    """
    import mcp  # noqa: F401
