"""`multi-mcp ARGS` whose own verbs run in forks of a loaded program: `python quick_verbs.py COMMAND ARGS`.

COMMAND is a JSON list with the command line that runs a verb instead of the program itself. tests/tray/desktop starts
the program itself.
"""

from __future__ import annotations

import json
import sys

from trayapp import __main__ as program
from trayapp.service import verb_process

_, command, *arguments = sys.argv
verb_process.own_command = lambda: list(json.loads(command))  # type: ignore[attr-defined]  # it is imported there
sys.argv = [program.__file__, *arguments]
sys.exit(program.main())
