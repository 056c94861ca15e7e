"""The packaged program `multi-mcp`: the whole command line, including the gateway.

Never here: anything that the program does when it is not packaged.
"""

import sys

import certificates
import dlls
import lasting

lasting.keep_archive()
certificates.name_them()
dlls.forget_folder()

from trayapp.__main__ import main  # noqa: E402 (the archive first)

if __name__ == "__main__":
    sys.exit(main())
