"""Which servers an import would take over, under which names, and taking them away where they were.

Never here: asking, printing, servers.yaml's form (config/edits).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trayapp.clients import files
from trayapp.clients.family import Keys
from trayapp.clients.secrets import without_secrets
from trayapp.clients.servers import Found, found_servers
from trayapp.clients.table import Client
from trayapp.clients.world import World, said_no
from trayapp.config.files import wait_until_quiet
from trayapp.config.parse import parse
from trayapp.model.errors import FileChangedError
from trayapp.model.plan import Config
from trayapp.model.servers import SAMPLE, ServerConfig, launch_settings

LONGEST_NAME = 100  # characters; with a client's name or a number behind it, one that servers.yaml takes
ATTEMPTS = 3  # against a client that saves at the same moment


@dataclass(frozen=True, slots=True)
class Offer:
    """One server to be taken over as `name`. `known`: one that starts the same way is there already, by that name."""

    found: Found
    name: str
    known: str = ""


def offers(found: Iterable[Found], existing: Mapping[Path | None, Config]) -> list[Offer]:
    """What could be taken over, in order. `existing`: what is configured, by folder (None: servers.yaml).

    A name that another server has gets the client's behind it; what starts the same way is taken over once, also where
    its secrets went into the keyring.
    """
    taken: dict[Path | None, dict[str, ServerConfig | None]] = {
        folder: {**dict.fromkeys(_wrong(config)), **config.servers} for folder, config in existing.items()
    }
    made: list[Offer] = []
    for one in found:
        names = taken.setdefault(one.folder, {})
        server = as_server(one.name, one.entry)
        known = next((name for name, other in names.items() if other and server and _same(other, server)), "")
        known = known or _hidden_as(one, names)
        name = known or _free_name(one, names)
        made.append(Offer(one, name, known))
        names[name] = server  # as it stands there: of two secrets none passes for the other
    return made


def _hidden_as(found: Found, names: Mapping[str, ServerConfig | None]) -> str:
    """The name under which an earlier import took it over, its secrets into the keyring; "" if none did.

    What the keyring has is not asked: a secret that was changed at the client since makes no other server.
    """
    for name in _names_of(found):
        other, server = names.get(name), as_server(name, without_secrets(name, found.entry))
        if other and server and _same(other, server):
            return name
    return ""


def _wrong(config: Config) -> list[str]:
    return [problem.server for problem in config.problems if problem.server]


def _same(one: ServerConfig, other: ServerConfig) -> bool:
    return launch_settings(one) == launch_settings(other)


def as_server(name: str, entry: Mapping[str, Any]) -> ServerConfig | None:
    """The entry as servers.yaml would have it; None when it cannot be used there."""
    return parse(json.dumps({"servers": {name: dict(entry)}}), "").servers.get(name)


def _names_of(found: Found) -> tuple[str, str]:
    """The name that it gets here, and the one where another server has that."""
    name = re.sub(r"[/\x00-\x1f\x7f]+", "-", found.name).strip()[:LONGEST_NAME] or found.client.name
    return name, f"{name}-{found.client.name}"


def _free_name(found: Found, taken: Collection[str]) -> str:
    wished = _names_of(found)
    name = wished[0]
    for candidate in wished:
        if candidate not in taken:
            return candidate
    return next(f"{name}-{n}" for n in range(2, len(taken) + 3) if f"{name}-{n}" not in taken)


# --- the first start


def first_offers(config: Config | None, world: World) -> list[Offer]:
    """Servers that clients have while servers.yaml holds none of the user's own, until the user says no.

    `config`: servers.yaml's, None while there is none. For a notification, a menu entry, a line. Blocks.
    """
    config = config or Config()
    own = {*config.servers, *_wrong(config)} - {SAMPLE}
    if own or config.settings.imports or said_no(world):
        return []
    return [offer for offer in offers(found_servers(world.machine).servers, {None: config}) if not offer.known]


def names_by_client(made: Iterable[Offer]) -> dict[str, list[str]]:
    """Names by the client's title."""
    found: dict[str, list[str]] = {}
    for one in made:
        found.setdefault(one.found.client.title, []).append(one.found.name)
    return found


def first_words(found: Mapping[str, list[str]]) -> str:
    """`Cursor and Claude Code have 5 servers of their own`; "" where there are none."""
    if not found:
        return ""
    *most, last = found
    who = f"{', '.join(most)} and {last}" if most else last
    total = sum(map(len, found.values()))
    have, their = ("have", "their") if most else ("has", "its")
    return f"{who} {have} {total} server{'' if total == 1 else 's'} of {their} own"


# --- moving


def take_away(moved: Iterable[Found]) -> list[Path]:
    """Remove these servers from their clients' files, each file once, with a backup; the files that changed.

    Blocks. Raises StorageError, Unparsable, EditRefusedError, FileChangedError; a file is changed whole or not at all.
    """
    places: dict[Path, tuple[Client, list[Keys]]] = {}
    for found in moved:
        for path, keys in ((found.file, found.keys), *found.also):
            places.setdefault(path, (found.client, []))[1].append(keys)
    return [path for path, (client, keys) in places.items() if _drop_all(client, path, keys)]


def _drop_all(client: Client, path: Path, keys: list[Keys]) -> bool:
    for left in range(ATTEMPTS - 1, -1, -1):
        wait_until_quiet(path)
        text = files.read_text(path)
        if text is None:
            return False
        after = text
        for each in keys:
            after = client.family.drop(after, each, str(path))
        if after == text:
            return False
        try:
            files.replace_text(path, text, after, files.backup_of(path, files.BACKUP_MOVED))
        except FileChangedError:
            if not left:
                raise
        else:
            return True
    raise AssertionError("unreachable")


def with_entry(offer: Offer, entry: Mapping[str, Any]) -> Offer:
    """The offer with another entry: its secrets taken out."""
    return replace(offer, found=replace(offer.found, entry=dict(entry)))
