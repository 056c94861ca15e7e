"""The Atheris target of `doors.frames`. Run it for 300 s: `python -m tests.fuzz.frames_target -max_total_time=300`."""

from __future__ import annotations

import logging
import sys

import atheris  # type: ignore[import-not-found, import-untyped, unused-ignore]  # pip install atheris

with atheris.instrument_imports(include=["trayapp"]):
    from tests.fuzz import doors


def main() -> None:
    """Fuzz until a failure or libFuzzer's time limit. Log messages up to WARNING are disabled."""
    logging.disable(logging.WARNING)
    atheris.Setup(sys.argv, doors.frames)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
