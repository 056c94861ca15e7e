"""The servers in clients' own files, in our keys: the input of import and `settings.imports`.

Our own entry is never among them: multi-mcp would start itself. A file in which a client disables servers is ignored if
it cannot be read. `settings.imports` ignores project files, because they need approval.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from trayapp.clients import files, jsonc
from trayapp.clients.conversion import Entry, convert, inputs_of, with_shared_rules
from trayapp.clients.entry import holders, is_ours
from trayapp.clients.family import Document, Keys, lookup
from trayapp.clients.files import Machine, locate, possible_files
from trayapp.clients.table import ALIASES, BY_NAME, CLIENTS, Client, find_client
from trayapp.clients.variables import Context
from trayapp.config.files import signature
from trayapp.config.problems import UnparsableError
from trayapp.config.read.fields import is_servers_key
from trayapp.model.config import Imported
from trayapp.model.errors import Problem, StorageError, UsageError

# Names of files in which a client disables servers, beside the user's file. Sources:
# https://docs.github.com/copilot/reference/copilot-cli-reference/cli-config-dir-reference (disabledMcpServers) and
# https://geminicli.com/docs/tools/mcp-server (`gemini mcp disable`)
_BESIDE = {"copilot-cli": ("settings.json", "config.json"), "gemini-cli": ("mcp-server-enablement.json",)}
# Clients whose own file lists the servers that they allow or exclude. Sources: the page of Gemini CLI above, and
# https://qwenlm.github.io/qwen-code-docs/en/users/features/mcp
_LISTED = frozenset(("gemini-cli", "qwen-code"))
USUAL_HOLDER = "mcpServers"
PROJECTS = "projects"  # the key in Claude Code's file with the settings of each folder
LINES_TOLD_TO = 1_000_000  # characters; in a longer file, locating the servers' lines would slow down the gateway
EDITIONS_OF_CODE = frozenset(("vscode", "vscode-insiders", "vscodium"))
_ALL_COUNT = frozenset(("opencode", "kilo"))  # clients that merge all of their files, later templates on top


@dataclass(frozen=True, slots=True)
class FoundServer:
    """One server of a client, in our keys."""

    client: Client
    file: Path
    keys: Keys  # its key path in `file`
    name: str
    entry: Entry
    line: int = 0
    folder: Path | None = None  # the server is only for sessions in this folder
    left_out: tuple[str, ...] = ()
    also: tuple[tuple[Path, Keys], ...] = ()  # other places with parts of it, if the client merges files

    @property
    def from_project(self) -> bool:
        """Return True if the server is in a file inside its folder, and so may have come with a repository."""
        return self.folder is not None and self.file.is_relative_to(self.folder) and self.keys[:1] != (PROJECTS,)


@dataclass(frozen=True, slots=True)
class FoundServers:
    """The servers and problems found in the files of one or more clients."""

    servers: tuple[FoundServer, ...] = ()
    problems: tuple[Problem, ...] = ()
    elsewhere: tuple[tuple[Path, str], ...] = ()  # (folder, name) of servers for sessions in other folders


def found_servers(machine: Machine, clients: Sequence[Client] = CLIENTS, folder: Path | None = None) -> FoundServers:
    """Return what read_servers finds for each of these clients, in order. Blocks; never raises."""
    every = [read_servers(client, machine, folder) for client in clients]
    return FoundServers(
        tuple(found for reading in every for found in reading.servers),
        tuple(problem for reading in every for problem in reading.problems),
        tuple(other for reading in every for other in reading.elsewhere),
    )


def read_servers(client: Client, machine: Machine, folder: Path | None = None) -> FoundServers:
    """Return the servers of one client, and with `folder` also its servers for sessions there. Blocks."""
    reader = _FilesReader(client, machine)
    users = user_files(client, machine)
    for path in users:
        reader.look(path)
    known = set(map(_real, users))  # in the home folder, a project's file may be a user's file
    for path in (folder / name for name in client.project if folder is not None):
        if _real(path) not in known:
            reader.look(path, folder)
    return reader.reading(folder)


def user_files(client: Client, machine: Machine) -> list[Path]:
    """Return the files for the user's servers, existing or not. Blocks: looks for profiles.

    There is one file, unless the client merges several, or has one for each profile.
    """
    if client.name in _ALL_COUNT:
        return list(possible_files(client, machine).values())
    path = locate(client, machine).path
    profiles: list[Path] = []
    if client.name in EDITIONS_OF_CODE:
        with suppress(OSError):
            profiles = sorted((path.parent / "profiles").glob(f"*/{path.name}"))
    return [path, *profiles]


def watched_files(client: Client, machine: Machine) -> list[Path]:
    """Return all files that define or disable the user's servers in that client. Blocks like user_files."""
    found = dict.fromkeys([*possible_files(client, machine).values(), *user_files(client, machine)])
    return [*found, *(beside for path in found for beside in switches_of(client, path))]


class ClientLayers:
    """A reader of clients' servers as configuration layers, which also detects changes of the clients' files."""

    def __init__(self, machine: Machine | None = None) -> None:
        self._machine = machine or Machine()

    def read(self, names: Sequence[str], file: str) -> tuple[Imported, ...]:
        """Return the layer of each named client. An unknown name is a problem of `file`. Blocks; never raises."""
        return tuple(self._layer(name, file) for name in dict.fromkeys(names))

    def signature(self, names: Sequence[str]) -> object:
        """Return a value that changes with every save of one of these clients' files. Blocks: makes some stat calls."""
        clients = [BY_NAME[known] for name in names if (known := ALIASES.get(name, name)) in BY_NAME]
        return tuple(signature(path) for client in clients for path in watched_files(client, self._machine))

    def _layer(self, name: str, file: str) -> Imported:
        try:
            client = find_client(name)
        except UsageError as error:
            problem = Problem(file, 0, f"imports: no client is named {name}", error.hint, fatal=False)
            return Imported(name, problems=(problem,))
        reading = read_servers(client, self._machine)
        servers: dict[str, FoundServer] = {}
        for found in reading.servers:
            servers.setdefault(found.name, found)  # if several files have a server of this name, the first one counts
        return Imported(
            client.name,
            {name: found.entry for name, found in servers.items()},
            {name: str(found.file) for name, found in servers.items()},
            {name: found.line for name, found in servers.items()},
            reading.problems,
        )


def _real(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # for example a symlink loop
        return path


@dataclass(frozen=True, slots=True)
class _Source:
    """One file of a client, and the key path of its servers. With a `folder`, they are only for sessions in it."""

    path: Path
    holder: Keys
    folder: Path | None = None


@dataclass(frozen=True, slots=True)
class _Raw:
    name: str
    value: Any
    source: _Source
    keys: Keys
    line: int
    inputs: Mapping[str, Mapping[str, Any]]
    off: bool = False
    also: tuple[tuple[Path, Keys], ...] = ()

    def over(self, lower: _Raw) -> _Raw:
        """Return this server merged over a lower one of the same name, including nested mappings, as OpenCode does."""
        also = (*lower.also, (lower.source.path, lower.keys))
        return replace(self, value=_merged(lower.value, self.value), also=also)


def _merged(lower: Any, upper: Any) -> Any:
    if not (isinstance(lower, Mapping) and isinstance(upper, Mapping)):
        return upper
    return {**lower, **{key: _merged(lower.get(key), value) for key, value in upper.items()}}


class _FilesReader:
    def __init__(self, client: Client, machine: Machine) -> None:
        self._client = client
        self._machine = machine
        self._raw: list[_Raw] = []
        self._problems: list[Problem] = []

    def look(self, path: Path, folder: Path | None = None) -> None:
        try:
            text = files.read_text(path) or ""
            document = self._client.family.read(text, str(path))
        except UnparsableError as error:
            self._problems.append(replace(error.problem, fatal=False))
            return
        except StorageError as error:
            self._problems.append(Problem(str(path), 0, error.title, error.hint, fatal=False))
            return
        sources = [_Source(path, holder, folder) for holder in holders(self._client, document)]
        if self._client.name == "claude-code" and folder is None:  # the file also has servers for single folders
            projects = document.get(PROJECTS)
            for place in projects if isinstance(projects, Mapping) else ():
                sources.append(_Source(path, (PROJECTS, place, USUAL_HOLDER), Path(place)))
        self._raw += [raw for source in sources for raw in self._below(text, document, source)]

    def _below(self, text: str, document: Document, source: _Source) -> Iterator[_Raw]:
        beneath = source.holder == self._client.holder and len(holders(self._client, document)) > 1
        if source.holder == (USUAL_HOLDER,) and USUAL_HOLDER not in document:  # another spelling, such as `mcp-servers`
            source = replace(source, holder=next(((key,) for key in document if is_servers_key(key)), source.holder))
        servers = lookup(document, source.holder)
        lines = self._client.family.lines(text, source.holder) if servers and len(text) <= LINES_TOLD_TO else {}
        beside = read_switches(self._client, locate(self._client, self._machine).path) if servers else []
        for name, value in servers.items() if isinstance(servers, Mapping) else ():
            # in newer files, the outer holder also has settings, which have no `type`
            if (not beneath or (isinstance(value, Mapping) and "type" in value)) and not is_ours(name, value):
                place = (source, (*source.holder, name), lines.get(name, 0))
                off = switched_off(self._client, document, source.holder, name, beside)
                # YAML names may be numbers, JSON names may hold lone surrogates
                text_of_name = str(name).encode(errors="replace").decode()
                yield _Raw(text_of_name, with_shared_rules(value, document), *place, inputs_of(document), off)

    def reading(self, folder: Path | None) -> FoundServers:
        """Return the user's servers and those for sessions in `folder`, the problems, and other folders' servers."""
        raw = [one for one in self._raw if one.source.folder in (None, folder)]
        if self._client.name in _ALL_COUNT:
            laid: dict[str, _Raw] = {}
            for one in raw:
                laid[one.name] = one.over(laid[one.name]) if one.name in laid else one
            raw = list(laid.values())
        servers = tuple(found for one in raw if (found := self._found(one)) is not None)
        others = ((one.source.folder, one.name) for one in self._raw)
        elsewhere = tuple((place, name) for place, name in others if place is not None and place != folder)
        return FoundServers(servers, tuple(self._problems), elsewhere)

    def _found(self, raw: _Raw) -> FoundServer | None:
        windows, folder = self._machine.platform == "win32", raw.source.folder
        context = Context(self._client, self._machine.home, folder, raw.inputs, windows)
        try:
            made = convert(raw.value, context)
        except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError) as error:
            why = str(error) if type(error) is ValueError else "its format is not supported"
            message = f"{raw.name} of {self._client.title}: {why}"
            self._problems.append(Problem(str(raw.source.path), raw.line, message, "", 0, raw.name, fatal=False))
            return None
        if made is None:
            return None
        entry, left_out = made
        entry |= {"disabled": True} if raw.off else {}
        return FoundServer(
            self._client, raw.source.path, raw.keys, raw.name, entry, raw.line, folder, left_out, raw.also
        )


def switches_of(client: Client, path: Path) -> list[Path]:
    """Return the files beside the user's file, existing or not, in which that client disables servers."""
    return [path.with_name(name) for name in _BESIDE.get(client.name, ())]


def switched_off(client: Client, document: Document, holder: Keys, name: str, beside: list[Document]) -> bool:
    """Return True if the client disables the server `name` below `holder`. `beside`: the result of read_switches."""
    if client.name == "claude-code":  # the list is beside the servers that it disables
        return name in _names(lookup(document, (*holder[:-1], "disabledMcpServers")))
    if client.name == "copilot-cli":
        return any(name in _names(each.get("disabledMcpServers")) for each in beside)
    return client.name in _LISTED and _is_off_in_lists(document, name, beside)


def read_switches(client: Client, path: Path) -> list[Document]:
    """Return the documents in the files of switches_of. Missing files give {}; unreadable ones are left out. Blocks."""
    found: list[Document] = []
    for file in switches_of(client, path):
        with suppress(UnparsableError, StorageError):
            found.append(jsonc.read(files.read_text(file) or "", str(file)))
    return found


def _is_off_in_lists(document: Document, name: str, beside: list[Document]) -> bool:
    """Return True if `mcp.allowed`, `mcp.excluded` (older: at the top level) or an enablement file disables the server.

    Names are compared without case, as in Gemini CLI. The lists may contain `*` and `?`, as in Qwen Code.
    """
    plain = name.lower().strip()
    allowed = _names(lookup(document, ("mcp", "allowed")) or document.get("allowMCPServers"))
    excluded = _names(lookup(document, ("mcp", "excluded")) or document.get("excludeMCPServers"))

    def is_in(patterns: list[str]) -> bool:
        return any(fnmatchcase(plain, pattern.lower().strip().replace("[", "[[]")) for pattern in patterns)

    off = any(lookup(each, (plain, "enabled")) is False for each in beside)
    return off or is_in(excluded) or bool(allowed and not is_in(allowed))


def _names(value: Any) -> list[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []
