"""Access of the verbs to this user's servers.yaml and approvals."""

from __future__ import annotations

import os

from trayapp.config.layers.overlay import lay_over
from trayapp.config.layers.project import TRUST_NAME, TrustStore
from trayapp.config.paths import find_paths
from trayapp.config.read.parse import parse
from trayapp.config.store import ConfigStore, sample_text
from trayapp.model.plan import Config


def own_store() -> ConfigStore:
    """Return this user's servers.yaml. A missing one starts as the commented sample with the bundled server."""
    return ConfigStore(find_paths(os.environ).config_file, first_text=sample_text)


def own_trust() -> TrustStore:
    """Return the approvals of project files and of commands for secrets."""
    return TrustStore(find_paths(os.environ).config_file.with_name(TRUST_NAME))


def own_config(store: ConfigStore) -> Config:
    """Return the configuration in the file, merged over its imports. Blocks. Raises StorageError, UnparsableError."""
    return config_of(store.read().text, str(store.path))


def config_of(text: str, file: str) -> Config:
    """Return the configuration in the text of `file`, merged over its imports. Blocks. Raises UnparsableError."""
    return with_imports(parse(text, file), file)


def with_imports(config: Config, file: str) -> Config:
    """Return a configuration, parsed from `file`, merged over its imports. Blocks."""
    if not config.settings.imports:
        return config
    from trayapp.clients.servers import ClientLayers  # 30 ms; most files need no imports

    return lay_over(config, ClientLayers().read(config.settings.imports, file), file)
