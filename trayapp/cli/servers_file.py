"""This user's servers.yaml, as the verbs find it.

Never here: what is in it.
"""

from __future__ import annotations

import os

from trayapp.config.layers.servers import lay_over
from trayapp.config.layers.trust import TRUST_NAME, TrustStore
from trayapp.config.paths import find_paths
from trayapp.config.read.parse import parse
from trayapp.config.sample import sample_text
from trayapp.config.store import ConfigStore
from trayapp.model.plan import Config


def own_store() -> ConfigStore:
    """The file; a missing one starts as the commented sample with the bundled server."""
    return ConfigStore(find_paths(os.environ).config_file, first_text=sample_text)


def own_trust() -> TrustStore:
    """Return the approvals of projects' files and of secrets' commands."""
    return TrustStore(find_paths(os.environ).config_file.with_name(TRUST_NAME))


def own_config(store: ConfigStore) -> Config:
    """What it says, laid over the imports that it names. Blocks. Raises StorageError, Unparsable."""
    return config_of(store.read().text, str(store.path))


def config_of(text: str, file: str) -> Config:
    """Read the text of `file`, laid over the imports that it names. Blocks. Raises Unparsable."""
    return with_imports(parse(text, file), file)


def with_imports(config: Config, file: str) -> Config:
    """A configuration, as parsed from `file`, laid over the imports that it names. Blocks."""
    if not config.settings.imports:
        return config
    from trayapp.clients.layers import ClientLayers  # 30 ms that most files do not need

    return lay_over(config, ClientLayers().read(config.settings.imports, file), file)
