"""Close our files and folders to other users, checked with every start."""

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
    """Remove other users' permissions from existing files and folders. Return those that cannot be made private.

    A link is not followed and counts as not private. Blocks. On Windows the permissions of the user's folder apply.
    """
    if sys.platform == "win32":
        return []
    return [place for place in places if not _close(place)]


def _close(place: Path) -> bool:
    try:
        facts = place.lstat()
        if stat.S_ISLNK(facts.st_mode) or facts.st_uid != os.getuid():
            log.warning("%s is a link or belongs to another user. Its content is not trusted", place)
            return False
        if facts.st_mode & OTHERS:
            place.chmod(stat.S_IMODE(facts.st_mode) & ~OTHERS)
            log.warning("Removed other users' permissions from %s", place)
    except FileNotFoundError:
        return True
    except OSError as error:
        log.warning("Cannot remove other users' permissions from %s: %s", place, error.strerror)
        return False
    return True
