"""Read `server.json`, the registry's description of a server (schema 2025-12-11 and the ones before it).

One package or remote becomes an entry; several are alternatives, best first: those that are pinned to a version.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from trayapp.sources.source import Entry, Keys, Source, UnclearSourceError, Variable, name_of_package

_RUNNERS = {"npm": "npx", "pypi": "uvx", "oci": "docker", "nuget": "dnx"}
_KIND = "server.json"
_VARIABLE = re.compile(r"\{([A-Za-z_][\w-]*)\}")
_IMAGE_ENV = ("-e", "--env")


def is_server_json(document: Mapping[str, Any]) -> bool:
    """True if a document describes a server as the registry does; also inside of `{"server": ...}`."""
    inner = document.get("server")
    one = inner if isinstance(inner, Mapping) else document
    return isinstance(one.get("name"), str) and any(isinstance(one.get(key), list) for key in ("packages", "remotes"))


def read_server_json(document: Mapping[str, Any], kind: str = _KIND) -> list[Source]:
    """Return the ways in which a server can be had, best first. Raises UnclearSourceError."""
    inner = document.get("server")
    one = inner if isinstance(inner, Mapping) else document
    name = short_name(str(one.get("name", "")))
    description = str(one.get("description") or "")
    packages = [part for part in one.get("packages") or [] if isinstance(part, Mapping)]
    remotes = [part for part in one.get("remotes") or [] if isinstance(part, Mapping)]
    ways = [_package(part) for part in packages] + [_remote(part) for part in remotes]
    found = [
        Source(name, entry, f"{kind} ({how})", tuple(wants), (), description)
        for way in ways
        if way is not None
        for entry, how, wants in [way]
    ]
    if not found:
        kinds = ", ".join(sorted({str(part.get("registryType")) for part in packages})) or "nothing"
        raise UnclearSourceError(
            f"{one.get('name')} cannot be started from here: it offers {kinds}", "See its own page"
        )
    return found


def short_name(name: str) -> str:
    """Return `github` for `io.github.github/github-mcp-server`."""
    return name_of_package(name.rpartition("/")[2] or name)


Way = tuple[Entry, str, list[Variable]]


def _package(part: Mapping[str, Any]) -> Way | None:
    kind = str(part.get("registryType") or part.get("registry_type") or part.get("registry_name") or "")
    identifier, version = str(part.get("identifier") or part.get("name") or ""), str(part.get("version") or "")
    runner = _RUNNERS.get(kind)
    if runner is None or not re.fullmatch(r"[\w@][\w@./:+-]*", identifier) or not re.fullmatch(r"[\w.+~-]*", version):
        return None
    transport = part.get("transport")
    if isinstance(transport, Mapping) and transport.get("type") not in (None, "stdio"):
        return None  # a server that is started by itself and then reached by its address
    wants: list[Variable] = []
    hint = str(part.get("runtimeHint") or "")
    if hint in ("npx", "uvx", "docker", "dnx", "podman", "bunx"):
        runner = hint
    own = _arguments(part.get("runtimeArguments") or part.get("runtime_arguments"))
    behind = _arguments(part.get("packageArguments") or part.get("package_arguments"))
    env = [
        one
        for one in part.get("environmentVariables") or part.get("environment_variables") or []
        if isinstance(one, Mapping)
    ]
    words: list[Any] = []
    if runner in ("docker", "podman"):
        words = ["run", "-i", "--rm"]
        words += [word for one in env for word in ("-e", str(one.get("name")))]
        words += [word for word in own if word not in ("run", "-i", "--rm")]
        image = (
            identifier
            if ":" in identifier.rpartition("/")[2] or "@" in identifier or not version
            else f"{identifier}:{version}"
        )
        words += [image]
    else:
        package = identifier + (f"@{version}" if version and version != "latest" else "")
        if runner in ("npx", "bunx"):
            words = ["-y", *(word for word in own if word not in ("-y", "--yes")), package]
        else:
            words = [*own, package]
    words += behind
    args: list[str] = []
    for word in words:
        if isinstance(word, _Wanted):
            wants.append(word.variable(("args", len(args)), word.text))
            args.append(word.text)
        else:
            args.append(str(word))
    entry: Entry = {"command": runner, "args": args}
    _add_inputs(entry, "env", env, wants)
    return entry, f"{kind} package", wants


def _remote(part: Mapping[str, Any]) -> Way | None:
    kind, url = part.get("type") or part.get("transport_type"), part.get("url")
    if not isinstance(url, str) or kind not in ("streamable-http", "sse", "http", None):
        return None
    wants: list[Variable] = []
    given = part.get("variables") if isinstance(part.get("variables"), Mapping) else {}
    for found in dict.fromkeys(_VARIABLE.findall(url)):
        said = given.get(found) if isinstance(given, Mapping) else None
        wants.append(
            _Wanted(f"{{{found}}}", found, said if isinstance(said, Mapping) else {}).variable(("url",), f"{{{found}}}")
        )
    entry: Entry = {"url": url} | ({"type": "sse"} if kind == "sse" else {})
    _add_inputs(entry, "headers", [one for one in part.get("headers") or [] if isinstance(one, Mapping)], wants)
    return entry, "remote", wants


class _Wanted:
    """A word of a command line that the user has to give, or may."""

    def __init__(self, text: str, name: str, said: Mapping[str, Any]) -> None:
        self.text = text
        self._name = name
        self._said = said

    def variable(self, keys: Keys, placeholder: str) -> Variable:
        said = self._said
        choices = said.get("choices")
        return Variable(
            self._name,
            keys,
            placeholder,
            str(said.get("description") or ""),
            secret=(said.get("isSecret") or said.get("is_secret")) is True,
            required=(said.get("isRequired") or said.get("is_required")) is True,
            choices=tuple(map(str, choices)) if isinstance(choices, list) else (),
        )


def _arguments(listed: Any) -> list[Any]:
    """Return the words of runtimeArguments or packageArguments, without optional ones that have no value."""
    words: list[Any] = []
    for one in listed if isinstance(listed, Sequence) and not isinstance(listed, str) else ():
        if not isinstance(one, Mapping):
            continue
        value = one.get("value") or one.get("default")
        required = (one.get("isRequired") or one.get("is_required")) is True
        name = str(one.get("name") or "")
        if one.get("type") == "named" and name:
            if value is None and not required:
                continue
            if value is None and one.get("format") == "boolean":
                words.append(name)
                continue
            words += [name, _worded(one, value, name)]
        elif value is not None or required:
            words.append(_worded(one, value, str(one.get("valueHint") or one.get("value_hint") or "value")))
    return words


def _worded(one: Mapping[str, Any], value: Any, name: str) -> Any:
    if value is None:
        hint = name.lstrip("-")
        return _Wanted(f"<{hint}>", hint, one)
    inner = one.get("variables")
    found = _VARIABLE.search(str(value))
    if found and isinstance(inner, Mapping):
        said = inner.get(found[1])
        return _Wanted(str(value), found[1], said if isinstance(said, Mapping) else {})
    return str(value)


def _add_inputs(entry: Entry, key: str, inputs: Sequence[Mapping[str, Any]], wants: list[Variable]) -> None:
    """Put variables or headers into the entry; those without a value are wanted."""
    values: dict[str, str] = {}
    for one in inputs:
        name = one.get("name")
        if not isinstance(name, str) or not name:
            continue
        value = one.get("value") or one.get("default")
        required = (one.get("isRequired") or one.get("is_required")) is True
        text = str(value) if value is not None else ""
        marked = _VARIABLE.search(text)
        if text and not marked:
            values[name] = text
            continue
        if not text and not required and not (one.get("isSecret") or one.get("is_secret")):
            continue
        values[name] = text
        wants.append(_Wanted(text, name, one).variable((key, name), marked[0] if marked else ""))
    if values:
        entry[key] = values
