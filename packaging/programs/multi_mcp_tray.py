"""The packaged program `multi-mcp-tray`: `multi-mcp tray` without a console window.

Never here: anything that the program does when it is not packaged.
"""

import sys

import dlls
import lasting

lasting.keep_archive()
dlls.forget_folder()

from trayapp.__main__ import main  # noqa: E402 (the archive first)

if __name__ == "__main__":
    words = sys.argv[1:]
    sys.argv[1:] = words if words[:1] == ["tray"] or words in (["--version"], ["-V"]) else ["tray", *words]
    sys.exit(main())
