"""Remove other users' permissions from our files and folders at every start."""

from __future__ import annotations

import logging
import os
import stat
import sys
from collections.abc import Iterable
from pathlib import Path

log = logging.getLogger(__name__)

OTHERS = 0o077


def close_to_others(places: Iterable[Path]) -> list[Path]:
    """Remove other users' permissions from existing files and folders. Return the paths that cannot be made private,
    among them symbolic links and other users' files.

    On Windows, do nothing and return [], because the permissions of the user's folder apply. Blocks.
    """
    if sys.platform == "win32":
        return []
    failed = []
    for place in places:
        try:
            facts = place.lstat()
            if stat.S_ISLNK(facts.st_mode) or facts.st_uid != os.getuid():
                log.warning("%s is a link or belongs to another user. Its content is not trusted", place)
                failed.append(place)
            elif facts.st_mode & OTHERS:
                place.chmod(stat.S_IMODE(facts.st_mode) & ~OTHERS)
                log.warning("Removed other users' permissions from %s", place)
        except FileNotFoundError:
            pass
        except OSError as error:
            log.warning("Cannot remove other users' permissions from %s: %s", place, error.strerror)
            failed.append(place)
    return failed
