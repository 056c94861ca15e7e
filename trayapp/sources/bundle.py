"""Read the manifest of an MCP bundle as a server (MANIFEST.md of github.com/modelcontextprotocol/mcpb, 0.1 to 0.4).

Our decisions where the specification is silent:
- The server runs in the bundle's folder, because the specification's examples have relative paths.
- An argument whose optional value is not given is left out, together with the option right before it.
- Several values in one text are separated like the folders in PATH.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from trayapp.clients import jsonc
from trayapp.config.problems import UnparsableError
from trayapp.sources.programs import name_of_package
from trayapp.sources.source import TOOLS_MOST, Entry, Keys, Source, UnclearSourceError, ValueKind, Variable, objects_in

VERSIONS = ("0.1", "0.2", "0.3", "0.4")
TYPES = ("node", "python", "binary", "uv")
KINDS: tuple[ValueKind, ...] = ("string", "number", "boolean", "directory", "file")
SIGNED, UNSIGNED = "signed, but multi-mcp does not verify signatures", "not signed"

_VARIABLE = re.compile(r"\$\{([^{}]*)\}")
_CONFIG = "user_config."
Table = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class BundlePlace:
    """The folder where a bundle will be unpacked, and the properties of that machine."""

    folder: str
    files: frozenset[str]  # the bundle's paths below that folder
    folders: Mapping[str, str]  # variable (HOME, DESKTOP, ...) -> path
    platform: str  # as in a manifest, such as `win32`
    programs: frozenset[str] = frozenset()  # which of `python` and `python3` are on the PATH

    @property
    def separator(self) -> str:
        """Return the separator in paths of that machine."""
        return "\\" if self.platform == "win32" else "/"


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest with a known format version, a name and a version. Its other fields are not checked yet."""

    name: str
    version: str
    document: Table


def read_manifest(data: bytes) -> Manifest:
    """Parse a manifest, and check its format version, name and version. Raises UnclearSourceError."""
    try:
        document = jsonc.read(data.decode("utf-8-sig"), "manifest.json")
    except (UnparsableError, UnicodeDecodeError, RecursionError):
        raise _unclear("is not valid JSON") from None
    if not isinstance(document, Mapping):
        raise _unclear("is not an object")
    written = document.get("manifest_version", document.get("dxt_version"))
    if written not in VERSIONS:
        raise _unclear(f"is of version {written}; known versions: {', '.join(VERSIONS)}")
    name, version = _text(document, "name"), _text(document, "version")
    if not name.strip() or not version.strip():
        raise _unclear("has no name or no version")
    return Manifest(name, version, document)


def read_bundle(manifest: Manifest, place: BundlePlace, digest: str, *, signed: bool = False) -> Source:
    """Return the server of a bundle that will be unpacked at `place`. Raises UnclearSourceError.

    `digest`: the bundle's SHA-256 in hexadecimal. `signed`: True if the bundle has a signature, which is not verified.
    """
    document = manifest.document
    platforms = _strings(_table(document, "compatibility"), "platforms")
    if platforms and place.platform not in platforms:
        raise UnclearSourceError(
            f"{manifest.name} does not run on this system: it is for {', '.join(platforms)}", "Ask its author"
        )
    options = {name: _option(name, raw, place) for name, raw in _table(document, "user_config").items()}
    entry, wants = _filled(_launch(document, place), options, place)
    author = _text(_table(document, "author"), "name")
    by = f" by {author}" if author else ""
    return Source(
        name_of_package("-".join(manifest.name.lower().split())),
        entry,
        f"a bundle, {manifest.name} {manifest.version}{by} (sha256 {digest[:16]}; {SIGNED if signed else UNSIGNED})",
        tuple(wants),
        (),
        _text(document, "description"),
        tools=tuple({"name": _text(one, "name")} for one in objects_in(document, "tools")[:TOOLS_MOST]),
        more_tools=document.get("tools_generated") is True,
    )


# -- launch ---------------------------------------------------------------------------------------------------------


def _launch(document: Table, place: BundlePlace) -> Entry:
    """Return the entry that the manifest defines for this system, with variables such as `${__dirname}` unreplaced."""
    server = _table(document, "server")
    kind, start = server.get("type"), _text(server, "entry_point")
    if kind not in TYPES:
        raise _unclear(f"has the server type {kind}; known types: {', '.join(TYPES)}")
    config = dict(_table(server, "mcp_config"))
    own = _table(_table(config, "platform_overrides"), place.platform)
    config |= {key: own[key] for key in ("command", "args", "env") if own.get(key)}
    command, args, env = _text(config, "command"), _strings(config, "args"), _table(config, "env")
    if any(not isinstance(value, str) for value in env.values()):
        raise _unclear("has a variable in server.mcp_config.env that is not a string")
    if not command:
        command, args, env = _default_launch(str(kind), start, env, place)
    return {"command": _program(command, place), "args": list(args), "env": dict(env), "cwd": place.folder}


def _default_launch(kind: str, start: str, env: Table, place: BundlePlace) -> tuple[str, list[str], Table]:
    """Return the command, args and env that a server type implies, for a manifest without a command."""
    if not start:
        raise _unclear("has neither server.entry_point nor server.mcp_config")
    path = f"${{__dirname}}/{start}"
    if kind == "uv":
        return "uv", ["run", "--directory", "${__dirname}", start], env
    if kind == "node":
        return "node", [path], env
    if kind == "python":
        lib = any(name.startswith("server/lib/") for name in place.files)
        return "python", [path], {**({"PYTHONPATH": "${__dirname}/server/lib"} if lib else {}), **env}
    return path, [], env


def _program(command: str, place: BundlePlace) -> str:
    """Return the program to start: an installed Python, a file in `${__dirname}` that the bundle has, or `command`."""
    if command in ("python", "python3") and command not in place.programs:
        return next(iter(sorted(place.programs)), command)
    inside = command.removeprefix("${__dirname}").replace("${/}", "/").replace("${pathSeparator}", "/")
    inside = inside.replace("\\", "/").lstrip("/") if inside != command or "/" in command else command
    inside = inside.removeprefix("./")
    named = next((name for name in (inside, f"{inside}.exe") if name in place.files), None)
    if named is None or (named.endswith(".exe") and not inside.endswith(".exe") and place.platform != "win32"):
        return command
    return place.separator.join(("${__dirname}", *named.split("/")))


# -- the user's values -----------------------------------------------------------------------------------------------


def _option(name: str, raw: Any, place: BundlePlace) -> Variable:
    """Return one option of `user_config` as a Variable whose `keys` are still empty. Raises UnclearSourceError."""
    field = f"user_config.{name}"
    if not isinstance(raw, Mapping):
        raise _unclear(f"has a {field} that is not an object")
    kind = raw.get("type")
    if kind not in KINDS:
        raise _unclear(f"has the type {kind} in {field}; known types: {', '.join(KINDS)}")
    limits = [raw.get(key) for key in ("min", "max")]
    if any(limit is not None and (isinstance(limit, bool) or not isinstance(limit, int | float)) for limit in limits):
        raise _unclear(f"has a limit in {field} that is not a number")
    multiple = raw.get("multiple") is True
    return Variable(
        name, (), f"${{{_CONFIG}{name}}}",
        _text(raw, "description") or _text(raw, "title"),
        secret=raw.get("sensitive") is True,
        required=raw.get("required") is True,
        choices=("true", "false") if kind == "boolean" else (),
        kind=kind,
        least=limits[0], most=limits[1],
        multiple=multiple, shared=True,
        default=_default(raw.get("default"), multiple, field, place),
    )  # fmt: skip


def _default(raw: Any, multiple: bool, field: str, place: BundlePlace) -> str:
    if raw is None:
        return ""
    texts = raw if isinstance(raw, list) and multiple else [raw]
    if any(not isinstance(one, str | int | float | bool) for one in texts):
        raise _unclear(f"has a default in {field} that is not a string, a number, true or false")
    plain = [str(one).lower() if isinstance(one, bool) else str(one) for one in texts]
    return os.pathsep.join(_with_folders(one, place) for one in plain)


def _filled(entry: Entry, options: Mapping[str, Variable], place: BundlePlace) -> tuple[Entry, list[Variable]]:
    """Return the entry with the bundle's variables replaced, and a Variable for each value that the user must give."""
    args = [_with_folders(word, place, options) for word in entry["args"]]
    env = {name: _with_folders(text, place, options) for name, text in entry["env"].items()}
    command = _with_folders(entry["command"], place, options)
    if any(name.startswith(_CONFIG) for name in _VARIABLE.findall(command)):
        raise _unclear("lets the user's values choose the program")
    places: list[tuple[Keys, str]] = [(("args", at), word) for at, word in enumerate(args)]
    places += [(("env", name), text) for name, text in env.items()]
    wants = [
        replace(options[name.removeprefix(_CONFIG)], keys=keys)
        for keys, text in places
        for name in dict.fromkeys(_VARIABLE.findall(text))
        if name.startswith(_CONFIG)
    ]
    made: Entry = {"command": command, "args": args} | ({"env": env} if env else {}) | {"cwd": entry["cwd"]}
    return made, wants


def _with_folders(text: str, place: BundlePlace, options: Mapping[str, Variable] | None = None) -> str:
    """Return a text with the bundle's own variables replaced. References to `options` stay; others raise an error."""

    def value(found: re.Match[str]) -> str:
        name = found[1]
        if name == "__dirname":
            return place.folder
        if name in ("/", "pathSeparator"):
            return place.separator
        if name in place.folders:
            return place.folders[name]
        if options is not None and name.startswith(_CONFIG) and name.removeprefix(_CONFIG) in options:
            return found[0]
        raise _unclear(f"uses the variable {found[0][:100]}, which is not defined")

    return _VARIABLE.sub(value, text)


# -- fields ----------------------------------------------------------------------------------------------------------


def _unclear(why: str) -> UnclearSourceError:
    return UnclearSourceError(f"The manifest of the bundle {why}", "Ask its author")


def _text(table: Table, key: str) -> str:
    value = table.get(key, "")
    if not isinstance(value, str):
        raise _unclear(f"has a {key} that is not a string")
    return value


def _table(table: Table, key: str) -> Table:
    value = table.get(key, {})
    if not isinstance(value, Mapping):
        raise _unclear(f"has a {key} that is not an object")
    return value


def _strings(table: Table, key: str) -> list[str]:
    value = table.get(key, [])
    if not isinstance(value, list) or any(not isinstance(one, str) for one in value):
        raise _unclear(f"has a {key} that is not a list of strings")
    return value
