"""Parsing of servers.yaml into a Config. Each problem has its line. An invalid entry does not affect the others."""

from __future__ import annotations

import json
from typing import Any, get_args, get_type_hints

from trayapp.config.problems import InvalidValueError, Report, UnparsableError, did_you_mean, problem_at, shown
from trayapp.config.read import fields
from trayapp.config.read.entry import read_entry
from trayapp.config.read.fields import (
    SETTING_KEYS,
    is_extension,
    is_servers_key,
    read_confine,
    read_keys,
    snake,
    spelled,
)
from trayapp.config.read.text import BOM, MAX_BYTES
from trayapp.config.urls import unsafe_url, url_fault
from trayapp.config.yaml.nodes import (
    MAX_DEPTH,
    MAX_NODES,
    Mapping,
    Node,
    Pair,
    compose,
    is_null,
    node_of,
    pairs,
    text_node,
)
from trayapp.model.config import (
    EXPOSE_MODES,
    PREFIX_MODES,
    Config,
    Confine,
    HistorySettings,
    HttpSettings,
    Profile,
    Settings,
)

EXAMPLE = "Write it as {servers: {name: {command: ...}}}"


def parse(text: str, file: str) -> Config:
    """Return the configuration in `text`, which may be empty. Problems name `file`.

    Raises UnparsableError if the file is too large, not YAML or not a mapping, and for a duplicate key at the top level
    or in `servers`. All other problems are in Config.problems, with a fatal one for each omitted server.
    """
    report = Report(file)
    top = read_top(text, file)
    entries = server_pairs(top, file).values()
    servers = [read_entry(entry, report) for entry in entries]
    said = [pair for pair in top if snake(pair.name) == "settings"]
    for pair in said[1:]:
        message = f"{shown(pair.name)} is a second spelling of {shown(said[0].name)} (line {said[0].key.line})"
        report.add(pair.key, message, "Keep one of them: the first one counts")
    for pair in top:
        if pair not in said and not is_servers_key(pair.name) and not is_extension(pair.name):
            hint = did_you_mean(pair.name, ("settings", "servers"))
            if spelled(pair.name, SETTING_KEYS) is not None:
                hint = f"{shown(pair.name)} is a setting: write it below settings"
            report.add(pair.key, f"Unknown key {shown(pair.name)}", hint)
    settings = read_settings(said[0].value, report) if said else Settings()
    return Config(settings, {server.name: server for server in servers if server}, report.sorted(), text)


def read_top(text: str, file: str) -> list[Pair]:
    """Return the top-level pairs of the file.

    Raises UnparsableError if the file cannot be parsed, is not a mapping, or has a duplicate key at the top level.
    JSON is read as YAML, which is nearly a superset and gives line numbers. If that fails for a `.json` file, it is
    read as JSON. Only JSON allows surrogate escapes (`"\\ud83d\\ude00"`) and very long keys.
    """
    try:
        root = compose(text, file)
    except UnparsableError:
        root = _of_json(text) if file.endswith(".json") else None
        if root is None:
            raise
    return [] if root is None or is_null(root) else _pairs(root, "The file", file)


def _of_json(text: str) -> Node | None:
    """Return the root node of a JSON text. A server's line is the one where its name first appears in the text.

    Return None if the text is not JSON, is too large or too deeply nested, or has a duplicate key.
    """

    def without_twins(found: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(found) != len(dict(found)):
            raise ValueError("a key is written twice")
        return dict(found)

    try:
        document = json.loads(text.removeprefix(BOM), object_pairs_hook=without_twins)
        if len(text) > MAX_BYTES or _size(document, MAX_DEPTH) > MAX_NODES:
            return None
        return _lined(text, document, 2) if isinstance(document, dict) else node_of(document, 1)
    except (ValueError, RecursionError):
        return None


def _lined(text: str, document: dict[str, Any], levels: int) -> Mapping:
    """Return a JSON object as a node. Keys down to `levels` levels have their own lines, deeper ones their parent's."""
    made = Mapping(0, 0, 1, 0, None, 1, [], True)
    for key, value in document.items():
        line = text.count("\n", 0, max(text.find(json.dumps(key, ensure_ascii=False)), 0)) + 1
        deeper = levels > 1 and isinstance(value, dict)
        made.pairs.append((text_node(key, line), _lined(text, value, levels - 1) if deeper else node_of(value, line)))
    return made


def _size(value: Any, levels: int) -> int:
    """Return the number of values: a value and all inside it. Raises ValueError if nested deeper than `levels`."""
    inside = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    if inside and not levels:
        raise ValueError("nested too deeply")
    return 1 + sum(_size(item, levels - 1) for item in inside)


def server_pairs(top: list[Pair], file: str) -> dict[str, Pair]:
    """Return server name -> entry. Raises UnparsableError if `servers` is not a mapping or has a name twice."""
    found: dict[str, Pair] = {}
    for pair in top:
        if not is_servers_key(pair.name) or is_null(pair.value):
            continue
        for entry in _pairs(pair.value, pair.name, file):
            if entry.name in found:
                raise UnparsableError(problem_at(file, entry.key, f"{shown(entry.name)} is written twice"))
            found[entry.name] = entry
    return found


def _pairs(node: Node, what: str, file: str) -> list[Pair]:
    if not isinstance(node, Mapping):
        raise UnparsableError(problem_at(file, node, f"{what} must be a mapping", EXAMPLE))
    try:
        return pairs(node)
    except InvalidValueError as wrong:
        raise UnparsableError(problem_at(file, wrong.place, f"{what}: {wrong.message}", wrong.hint)) from None


# --- the `settings` mapping: an invalid value is reported with its line, and the default applies

_HINTS = get_type_hints(Settings)
_CHOICES = ("token_store", "approve_changes", "write_tools", "suspicious")


def read_document_url(node: Node) -> str:
    """Read the https address of a client ID metadata document, which is our client_id (MCP authorization)."""
    url: str = fields.text(node).strip()
    if url_fault(url) or not url.startswith("https://") or url.count("/") < 3 or url.endswith("/"):
        raise InvalidValueError(node, "must be the https address of a document")
    return url


def read_registry(node: Node) -> str:
    """Read the base address of a registry that has the official registry's API. A /v0.1 at its end is removed."""
    url: str = fields.text(node).strip().rstrip("/")
    fault = unsafe_url(url)
    if fault:
        raise InvalidValueError(node, f"is not the address of a registry: it {fault}")
    return url.removesuffix("/v0.1")


READERS: dict[str, fields.Reader] = {
    "expose": fields.choice(EXPOSE_MODES),
    "defer_above": fields.whole(0, 1_000_000),
    "tool_prefix": fields.choice(PREFIX_MODES),
    "idle_timeout": fields.duration("min"),
    "health_interval": fields.duration("s", least=1.0),  # a shorter interval would keep an idle machine awake
    "failure_backoff": fields.duration("s"),
    "connect_timeout": fields.duration("s", zero=False),
    "request_timeout": fields.duration("s"),
    "linger": fields.duration("min"),
    "result_limit": fields.whole(0, 1 << 30),
    "imports": fields.words,
    "synonyms": fields.word_lists,
    **{name: fields.choice(get_args(_HINTS[name])) for name in _CHOICES},
    "ask": fields.ask_mode,
    "ask_timeout": fields.duration("s", zero=False),
    "update_check": fields.switch,
    "registry": read_registry,
    "confine": read_confine,
    "min_age": fields.duration("d"),
    "client_metadata_url": read_document_url,
}
_HTTP_READERS: dict[str, fields.Reader] = {"enabled": fields.switch, "port": fields.port, "token": fields.switch}
_HISTORY_READERS: dict[str, fields.Reader] = {
    **dict.fromkeys(("enabled", "arguments"), fields.switch),
    "keep": fields.duration("d", zero=False),
    "size": fields.size(1_000_000, 10_000_000_000),
}
_PROFILE_READERS: dict[str, fields.Reader] = {
    "expose": fields.choice(EXPOSE_MODES),
    **dict.fromkeys(("servers", "include_tools", "exclude_tools"), fields.words),
}


def read_settings(node: Node, report: Report) -> Settings:
    """Return the settings of one mapping, or the defaults for null.

    Invalid values are reported and replaced by defaults. An invalid `confine`, however, confines every server, because
    the user wanted a limit.
    """
    options = _SettingReader(report)
    groups: dict[str, fields.Reader] = {
        "http": lambda node: options.group(HttpSettings, "http", node, _HTTP_READERS),
        "history": lambda node: options.group(HistorySettings, "history", node, _HISTORY_READERS),
        "profiles": options.profiles,
    }
    found = options.read("settings", node, READERS | groups)
    if options.unread_limit:
        found["confine"] = Confine()
    return Settings(**found)


class _SettingReader:
    """A reader of `settings` and its nested mappings. `without`: the hint for an error that has none of its own."""

    def __init__(self, report: Report, without: str = "") -> None:
        self._report = report
        self._without = without
        self.failed = False
        self.unread_limit = False  # the `confine` of all servers could not be read

    def read(self, inside: str, node: Node, readers: dict[str, fields.Reader]) -> dict[str, Any]:
        """Return the valid values by key, and report the others. Return {} if the node is not a mapping."""
        try:
            said = [] if is_null(node) else fields.mapping_pairs(node)
        except InvalidValueError as wrong:
            self.failed = True
            hint = wrong.hint or self._without or "The defaults apply"
            self._report.add(wrong.place, f"{inside} {wrong.message}", hint)
            return {}
        found = read_keys(said, readers, self._wrong, self._unknown)
        return {name: value for name, (_, value) in found.items()}

    def _unknown(self, pair: Pair, hint: str) -> None:
        self._report.add(pair.key, f"Unknown setting {shown(pair.name)}", hint)

    def group(
        self, group: type[HttpSettings | HistorySettings], inside: str, node: Node, readers: dict[str, fields.Reader]
    ) -> HttpSettings | HistorySettings:
        """Return the settings of a nested mapping. `true` or `false` in its place sets `enabled`."""
        if fields.is_switch(node):
            return group(enabled=fields.switch(node))
        return group(**self.read(inside, node, readers))

    def profiles(self, node: Node) -> dict[str, Profile]:
        """Return the profiles by name. Omit those with an invalid limit: without it, they would show everything."""
        profiles: dict[str, Profile] = {}
        for pair in fields.mapping_pairs(node):
            profile = _SettingReader(self._report, "The profile is ignored")
            said = profile.read(f"profile {shown(pair.name)}", pair.value, _PROFILE_READERS)
            if not profile.failed:
                profiles[pair.name] = Profile(**said)
        return profiles

    def _wrong(self, pair: Pair, wrong: InvalidValueError) -> None:
        name, is_limit = shown(pair.name), snake(pair.name) != "expose"
        self.failed |= is_limit
        hint = wrong.hint or (self._without if is_limit else "") or "The default applies"
        if snake(pair.name) == "confine":
            name, self.unread_limit = "confine", True
            hint = f"{wrong.hint}. " if wrong.hint else ""
            hint += "Until it is corrected, every server is confined"
        self._report.add(wrong.place, f"{name} {wrong.message}", hint)
