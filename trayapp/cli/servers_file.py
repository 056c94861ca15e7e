"""This user's servers.yaml, as the verbs find it.

Never here: what is in it.
"""

from __future__ import annotations

import os

from trayapp.config.paths import find_paths
from trayapp.config.sample import sample_text
from trayapp.config.store import Store
from trayapp.service.command import sample_command


def own_store() -> Store:
    """The file; a missing one starts as the commented sample with the bundled server."""
    return Store(find_paths(os.environ).config_file, first_text=lambda: sample_text(sample_command()))
