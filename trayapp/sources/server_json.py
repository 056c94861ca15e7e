"""Read `server.json`, the registry's description of a server (schema 2025-12-11 and earlier).

Each package or remote that can be used becomes an alternative, best first: packages, then remotes, SSE last.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trayapp.config.urls import unsafe_url
from trayapp.model.redact import redacted
from trayapp.sources.placeholders import placeholder_in
from trayapp.sources.programs import name_of_package, package_of
from trayapp.sources.source import TOOLS_MOST, Entry, Keys, Source, UnclearSourceError, Variable, objects_in

_RUNNERS = {"npm": "npx", "pypi": "uvx", "oci": "docker", "nuget": "dnx"}
_KIND = "server.json"
_NAMES = {  # a name in a registry: not a path, an address or an option
    "npm": re.compile(r"(?:@[\w.~-]+/)?\w[\w.~-]*"),
    "pypi": re.compile(r"\w[\w.-]*(?:\[[\w.,-]*\])?"),
    "oci": re.compile(r"\w[\w.-]*(?::\d+)?(?:/[\w.-]+)*(?::[\w.-]+)?(?:@sha256:[0-9a-f]{64})?"),
    "nuget": re.compile(r"\w[\w.-]*"),
}
# Registry type -> a part of the domain of the registry that its runner uses.
_OWN = {"npm": "npmjs", "pypi": "pypi", "oci": "docker", "nuget": "nuget"}
_VARIABLE = re.compile(r"\{([A-Za-z_][\w-]*)\}")
_HINTS = frozenset(("npx", "uvx", "docker", "dnx", "podman", "bunx"))
_ENV = ("-e", "--env")
_RUN = ("run", "-i", "--rm")
CHOICES_MOST = 100


class OnlyBundlesError(UnclearSourceError):
    """Raised if only bundles of a server can be used. They must be fetched. `bundles`: (address, SHA-256) of each."""

    def __init__(self, name: str, bundles: Sequence[tuple[str, str]]) -> None:
        super().__init__(f"{name} offers a bundle", f"Download it, then add the file: {bundles[0][0]}")
        self.name = name
        self.bundles = bundles


def is_server_json(document: Mapping[str, Any]) -> bool:
    """Return True if a document describes a server in the registry's format, directly or in `{"server": ...}`."""
    one = _server_in(document)
    return isinstance(one.get("name"), str) and any(isinstance(one.get(key), list) for key in ("packages", "remotes"))


def read_server_json(document: Mapping[str, Any], kind: str = _KIND) -> list[Source]:
    """Return the ways to start or reach a server, best first. Raises UnclearSourceError, OnlyBundlesError."""
    one = _server_in(document)
    full = _text(one, "name")
    name = short_name(full)
    description = _text(one, "description")
    packages, remotes = objects_in(one, "packages"), objects_in(one, "remotes")
    ways = [_package(part) for part in packages]
    ways += sorted(map(_remote, remotes), key=lambda way: way is not None and way[0].get("type") == "sse")
    tools = _tools(one) or _tools(document)
    found = [
        Source(name, entry, f"{kind} ({how})", tuple(wants), (), description, tools=tools)
        for entry, how, wants in filter(None, ways)
    ]
    bundles = [part for part in packages if _text(part, "registryType", "registry_type") == "mcpb"]
    if not found and (pairs := bundles_in(one)):
        raise OnlyBundlesError(full, pairs)
    if not found and len(bundles) == len(packages) > 0:
        title = f"The bundle of {full} has no fileSha256 or no https address, so the file cannot be verified"
        raise UnclearSourceError(title, "Ask its author, or download it and add the file")
    if not found:
        kinds = {_text(part, "registryType", "registry_type", "registry_name") for part in packages} - {""}
        known = not kinds.isdisjoint(_RUNNERS)
        what = ", ".join(sorted(kinds)) or "nothing"
        why = "Its package has an unusable name, version or registry, or runs only as an HTTP server. " if known else ""
        raise UnclearSourceError(f"Cannot start or reach {full}: it offers {what}", f"{why}See its own page")
    return found


def bundles_in(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (address, SHA-256) of each of a server's bundles that has a hash and a safe address."""
    one = _server_in(document)
    listed = [part for part in objects_in(one, "packages") if _text(part, "registryType", "registry_type") == "mcpb"]
    pairs = [(_text(part, "identifier"), _text(part, "fileSha256", "file_sha256").lower()) for part in listed]
    return [(url, digest) for url, digest in pairs if re.fullmatch(r"[0-9a-f]{64}", digest) and not unsafe_url(url)]


def _server_in(document: Mapping[str, Any]) -> Mapping[str, Any]:
    inner = document.get("server")
    return inner if isinstance(inner, Mapping) else document


def _tools(part: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    meta = part.get("_meta")
    own = meta.get("io.modelcontextprotocol.registry/publisher-provided") if isinstance(meta, Mapping) else None
    return tuple(objects_in(own, "tools")[:TOOLS_MOST]) if isinstance(own, Mapping) else ()


def short_name(name: str) -> str:
    """Return a server's name from its registry name: `acme` for `com.acme/mcp`, `git` for `io.github.x/git-mcp`."""
    namespace, _, last = name.rpartition("/")
    return name_of_package(f"@{namespace.rpartition('.')[2]}/{last}" if namespace and last else name)


Way = tuple[Entry, str, list[Variable]]
Input = Mapping[str, Any]
# As spelled in the schema, in an older schema, and in a bundle's manifest, from which authors copy.
_REQUIRED = ("isRequired", "is_required", "required")
_SECRET = ("isSecret", "is_secret", "sensitive")


@dataclass(frozen=True, slots=True)
class _Filled:
    """The text of an input, and the placeholder, name and definition of each value that the user has to give."""

    text: str
    asks: tuple[tuple[str, str, Input], ...] = ()
    optional: bool = False  # the whole word may be left out, together with its option

    def variables(self, keys: Keys) -> Iterator[Variable]:
        for placeholder, name, definition in self.asks:
            choices = definition.get("choices")
            yield Variable(
                name,
                keys,
                placeholder,
                _text(definition, "description"),
                secret=_is(definition, *_SECRET) or redacted(f"{name}=plain-value") != f"{name}=plain-value",
                # a value inside an argument or a URL is required, unless the whole argument may be left out
                required=_is(definition, *_REQUIRED) or (keys[0] in ("args", "url") and not self.optional),
                choices=tuple(str(one) for one in choices[:CHOICES_MOST]) if isinstance(choices, list) else (),
                kind="path" if definition.get("format") == "filepath" else "string",
            )


def _text(part: Input, *keys: str) -> str:
    """Return the first non-empty text, number or boolean under these keys, as text; "" if there is none."""
    for key in keys:
        value = part.get(key)
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, str | int | float) and value != "":
            return str(value)
    return ""


def _is(part: Input, *keys: str) -> bool:
    return any(part.get(key) is True for key in keys)


def _package(part: Input) -> Way | None:
    kind = _text(part, "registryType", "registry_type", "registry_name")
    identifier, version = _text(part, "identifier", "name"), _text(part, "version")
    runner = _RUNNERS.get(kind)
    if runner is None or not re.fullmatch(r"[\w.+~-]*", version):
        return None
    if not _NAMES[kind].fullmatch(identifier) or ".." in identifier:
        return None
    base = _text(part, "registryBaseUrl", "registry_base_url")
    if base and not re.fullmatch(rf"https://(?:[\w-]+\.)*{_OWN[kind]}\.(?:org|io|com)(?:/.*)?", base):
        host = re.match(r"https://(\w[\w.-]*(?::\d+)?)(?:/|$)", base)
        if kind != "oci" or host is None:
            return None  # another registry may have a different package of that name
        identifier = identifier if re.match(r"[^/]*[.:][^/]*/", identifier) else f"{host[1]}/{identifier}"
    transport = part.get("transport")
    if isinstance(transport, Mapping) and transport.get("type") not in (None, "stdio"):
        return None  # a server that is started separately and then reached by its address
    hint = _text(part, "runtimeHint", "runtime_hint")
    runner = hint if hint in _HINTS else runner
    own = _arguments(objects_in(part, "runtimeArguments", "runtime_arguments"))
    behind = _arguments(objects_in(part, "packageArguments", "package_arguments"), offers_places=True)
    env = objects_in(part, "environmentVariables", "environment_variables")
    package = identifier + (f"@{version}" if version and version != "latest" else "")
    if runner in ("docker", "podman"):
        tagged = not version or ":" in identifier.rpartition("/")[2] or "@" in identifier
        image = identifier if tagged else f"{identifier}:{version}"
        own = [word for word in own if word.text not in (*_RUN, image)]  # some authors repeat these in runtimeArguments
        variables = {_text(one, "name"): None for one in env}
        own = [word for at, word in enumerate(own) if word.text not in variables or (at and own[at - 1].text in _ENV)]
        names = variables.keys() - {word.text for word in own}
        named = [_Filled(word) for name in variables if name in names for word in ("-e", name)]
        words = [*map(_Filled, _RUN), *named, *own, _Filled(image)]
    elif runner in ("npx", "bunx", "dnx"):
        own = [word for word in own if word.text not in ("-y", "--yes")]
        yes = {"npx": ["-y"], "dnx": ["--yes"], "bunx": []}[runner]  # bunx fetches packages without a prompt
        named = [*own, _Filled(package)] if runner == "dnx" else _with_package(runner, own, package)
        words = [*map(_Filled, yes), *named]
    elif any(word.text == identifier for word in own):  # some authors repeat the package in runtimeArguments
        words = [_Filled(package) if word.text == identifier else word for word in own]
    else:
        is_program = runner == "uvx" and behind and behind[0].text[:1] != "-"
        words = _named_by_from(own, identifier, version) if is_program else []
        words = words or _with_package(runner, own, package)
    words += behind
    entry: Entry = {"command": runner, "args": [word.text for word in words]}
    wants = [one for at, word in enumerate(words) for one in word.variables(("args", at))]
    _add_inputs(entry, "env", env, wants)
    return entry, f"{kind} package", wants


def _with_package(runner: str, own: Sequence[_Filled], package: str) -> list[_Filled]:
    """Return the runtime arguments with the package inserted before any arguments of the server itself."""
    texts = [word.text for word in own]
    taken = package_of([runner, *texts])
    naming = ("--from",) if runner == "uvx" else ("-p", "--package")
    is_named = any(text.partition("=")[0] in naming for text in texts)
    before = texts.index(taken) if taken in texts and not is_named else len(texts)
    return [*own[:before], _Filled(package), *own[before:]]


def _named_by_from(own: Sequence[_Filled], identifier: str, version: str) -> list[_Filled]:
    """Return the runtime arguments with `--from` pinned to `version`; [] if it is missing or names another package."""
    texts = [word.text for word in own]
    at = texts.index("--from") + 1 if "--from" in texts else len(texts)
    if at >= len(texts) or re.split(r"[\[@=<>!~ ]", texts[at])[0].lower() != identifier.lower():
        return []
    pinned = texts[at] if not version or re.search(r"[@=<>!~]", texts[at]) else f"{texts[at]}=={version}"
    return [*own[:at], _Filled(pinned), *own[at + 1 :]]


def _remote(part: Input) -> Way | None:
    kind, url = part.get("type") or part.get("transport_type"), part.get("url")
    if not isinstance(url, str) or kind not in ("streamable-http", "sse", "http", None):
        return None
    given: Any = part.get("variables") if isinstance(part.get("variables"), Mapping) else {}
    filled = _filled_in(url, {name: given.get(name, {}) for name in _VARIABLE.findall(url)})
    wants = list(filled.variables(("url",)))
    entry: Entry = {"url": filled.text} | ({"type": "sse"} if kind == "sse" else {})
    _add_inputs(entry, "headers", objects_in(part, "headers"), wants)
    return entry, "remote", wants


def _filled(one: Input, name: str, empty: str = "") -> _Filled:
    """Return an input's text and the values that the user has to give. `empty`: the text if the input has no value."""
    text = _text(one, "value", "default")
    if not text:
        return _Filled(empty, ((empty, name, one),))
    inner = one.get("variables")
    if isinstance(inner, Mapping):
        return _filled_in(text, inner)
    mark = marked[0] if (marked := _VARIABLE.search(text)) else placeholder_in(text)
    return _Filled(text, ((mark, name, one),)) if mark else _Filled(text)


def _filled_in(text: str, inner: Mapping[str, Any]) -> _Filled:
    """Return a text with the known values of its variables filled in. The user gives the rest of `inner`."""
    asks: list[tuple[str, str, Input]] = []
    for name in dict.fromkeys(_VARIABLE.findall(text)):
        definition = inner.get(name)
        if not isinstance(definition, Mapping):
            continue
        if value := _text(definition, "value", "default"):
            text = text.replace(f"{{{name}}}", value)
        else:
            asks.append((f"{{{name}}}", name, definition))
    return _Filled(text, tuple(asks))


def _arguments(listed: Sequence[Input], *, offers_places: bool = False) -> list[_Filled]:
    """Return the words of runtimeArguments or packageArguments.

    An optional argument without a value is kept for the user to fill in if it is an option that takes a value. With
    `offers_places`, so is a positional argument that follows no option. A boolean option is kept as a flag if it is
    `true`, or if it is required and has no value.
    """
    words: list[_Filled] = []
    for one in listed:
        name = _text(one, "name")
        named = one.get("type") == "named" and name
        hint = (name if named else _text(one, "valueHint", "value_hint") or name or "value").lstrip("-")
        if named and one.get("format") == "boolean" and _text(one, "value", "default") in ("", "true"):
            words += [_Filled(name)] if _is(one, *_REQUIRED) or _text(one, "value", "default") else []
            continue
        optional = not _is(one, *_REQUIRED)
        is_empty = not _text(one, "value", "default")
        # authors often do not mark options without a value; the options found here certainly take one
        takes = _text(one, "valueHint", "value_hint", "placeholder") or one.get("choices")
        takes = takes or one.get("format") in ("string", "number", "filepath")
        is_place = offers_places and not (named or (words and words[-1].text.startswith("-")))
        if optional and is_empty and not (is_place or (named and takes)):
            continue
        word = replace(_filled(one, hint, f"<{hint}>"), optional=optional and bool(named or is_empty))
        words += [_Filled(name), word] if named else [word]
    return words


def _add_inputs(entry: Entry, key: str, inputs: Sequence[Input], wants: list[Variable]) -> None:
    """Put variables or headers (`key`) into the entry, and append the values that the user has to give to `wants`."""
    values: dict[str, str] = {}
    for one in inputs:
        name = _text(one, "name")
        if not name or not (re.fullmatch(r"[A-Za-z_][\w.-]*", name) or _is(one, *_REQUIRED) or _text(one, "value")):
            continue  # a pattern for several names, such as `HEADER_*`
        filled = _filled(one, name)
        values[name] = filled.text
        wants += filled.variables((key, name))
    if values:
        entry[key] = values
