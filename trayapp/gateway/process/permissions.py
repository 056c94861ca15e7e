"""Files and folders of ours that are for this user alone: looked at with every start, and closed where they are not.

Never here: the runtime folder (wire/lock), making any of them.
"""

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
    """Take what others may do with them from files and folders that are there; those that are not ours alone even so.

    A link is not followed: it counts as not ours. Blocks. Windows keeps them by the rights of the user's folder.
    """
    if sys.platform == "win32":
        return []
    return [place for place in places if not _close(place)]


def _close(place: Path) -> bool:
    try:
        facts = place.lstat()
        if stat.S_ISLNK(facts.st_mode) or facts.st_uid != os.getuid():
            log.warning("%s is a link, or belongs to another user: what it holds is not trusted", place)
            return False
        if facts.st_mode & OTHERS:
            place.chmod(stat.S_IMODE(facts.st_mode) & ~OTHERS)
            log.warning("Others could reach %s; now it is closed to them", place)
    except FileNotFoundError:
        return True
    except OSError as error:
        log.warning("%s cannot be closed to others: %s", place, error.strerror)
        return False
    return True
