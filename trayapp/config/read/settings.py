"""Reading of `settings` in servers.yaml. An invalid value keeps its default and is reported with its line."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

from trayapp.config.problems import InvalidValueError, Report, shown
from trayapp.config.read import fields
from trayapp.config.read.fields import read_confine, read_keys, timed
from trayapp.config.read.spelling import HISTORY_KEYS, HTTP_KEYS, PROFILE_KEYS, SETTING_KEYS, snake
from trayapp.config.urls import unsafe_url, url_fault
from trayapp.config.yaml.nodes import Node, Pair, Scalar, is_null, kind
from trayapp.model.settings import EXPOSE_MODES, PREFIX_MODES, Confine, HistorySettings, HttpSettings, Profile, Settings

MAX_PORT = 65_535
MAX_TOOLS = 1_000_000
MAX_RESULT_BYTES = 1 << 30
MIN_HISTORY_BYTES = 1_000_000
MAX_HISTORY_BYTES = 10_000_000_000
MIN_HEALTH_INTERVAL_S = 1.0  # a shorter interval would keep an idle machine awake

_HINTS = get_type_hints(Settings)


def read_document_url(node: Node) -> str:
    """Read the https address of a client ID metadata document. It is our client_id (MCP authorization)."""
    url: str = fields.text(node).strip()
    if url_fault(url) or not url.startswith("https://") or url.count("/") < 3 or url.endswith("/"):
        raise InvalidValueError(node, "must be the https address of a document")
    return url


def read_registry(node: Node) -> str:
    """Return the base address of a registry with the official registry's API, without the API's own path."""
    url: str = fields.text(node).strip().rstrip("/")
    fault = unsafe_url(url)
    if fault:
        raise InvalidValueError(node, f"is not the address of a registry: it {fault}")
    return url.removesuffix("/v0.1")


READERS: dict[str, fields.Reader] = {
    "expose": fields.choice(EXPOSE_MODES),
    "defer_above": fields.whole(0, MAX_TOOLS),
    "tool_prefix": fields.choice(PREFIX_MODES),
    "idle_timeout": fields.duration("min"),
    "health_interval": fields.duration("s", least=MIN_HEALTH_INTERVAL_S),
    "failure_backoff": fields.duration("s"),
    "connect_timeout": fields.duration("s", zero=False),
    "request_timeout": fields.duration("s"),
    "linger": fields.duration("min"),
    "result_limit": fields.whole(0, MAX_RESULT_BYTES),
    "imports": fields.words,
    "synonyms": fields.word_lists,
    "token_store": fields.choice(get_args(_HINTS["token_store"])),
    "approve_changes": fields.choice(get_args(_HINTS["approve_changes"])),
    "write_tools": fields.choice(get_args(_HINTS["write_tools"])),
    "suspicious": fields.choice(get_args(_HINTS["suspicious"])),
    "ask": fields.ask_mode,
    "ask_timeout": fields.duration("s", zero=False),
    "update_check": fields.switch,
    "registry": read_registry,
    "confine": read_confine,
    "min_age": fields.duration("d"),
    "client_metadata_url": read_document_url,
}
_HTTP_READERS: dict[str, fields.Reader] = {
    "enabled": fields.switch,
    "port": fields.whole(0, MAX_PORT),
    "token": fields.switch,
}
_HISTORY_READERS: dict[str, fields.Reader] = {
    "enabled": fields.switch,
    "arguments": fields.switch,
    "keep": fields.duration("d", zero=False),
    "size": fields.size(MIN_HISTORY_BYTES, MAX_HISTORY_BYTES),
}
_PROFILE_READERS: dict[str, fields.Reader] = {
    "servers": fields.words,
    "expose": fields.choice(EXPOSE_MODES),
    "include_tools": fields.words,
    "exclude_tools": fields.words,
}


def read_settings(node: Node, report: Report) -> Settings:
    """Return the settings of one mapping (null: none). Never raise: each invalid value keeps its default."""
    options = _SettingReader(report)
    found = options.read("settings", node, SETTING_KEYS)
    if options.unread_limit:
        found["confine"] = Confine()
    return Settings(**found)


class _SettingReader:
    """Reads `settings` and its nested mappings. `without`: the consequence of an unreadable value."""

    def __init__(self, report: Report, without: str = "") -> None:
        self._report = report
        self._without = without
        self.failed = False
        self.unread_limit = False  # the `confine` of all servers could not be read

    def read(self, inside: str, node: Node, known: frozenset[str]) -> dict[str, Any]:
        """Return values by key, or {} if the node is no mapping."""
        try:
            pairs = [] if is_null(node) else fields.mapping_pairs(node)
        except InvalidValueError as wrong:
            self.failed = True
            self._report.add(
                wrong.place, f"{inside} {wrong.message}", wrong.hint or self._without or "The defaults apply"
            )
            return {}
        found = read_keys(pairs, known, self._reader_of(inside), self._wrong, self._unknown)
        return {name: value for name, (_, value) in found.items()}

    def _reader_of(self, inside: str) -> Any:
        nested = {"http": self._http, "history": self._history, "profiles": self._profiles}
        tables = {"settings": READERS | nested, "http": _HTTP_READERS, "history": _HISTORY_READERS}
        table = tables.get(inside, _PROFILE_READERS)
        return lambda name, unit: timed(name, unit) if unit else table[name]

    def _http(self, node: Node) -> HttpSettings:
        if isinstance(node, Scalar) and kind(node) == "bool":
            return HttpSettings(enabled=fields.switch(node))
        return HttpSettings(**self.read("http", node, HTTP_KEYS))

    def _history(self, node: Node) -> HistorySettings:
        if isinstance(node, Scalar) and kind(node) == "bool":
            return HistorySettings(enabled=fields.switch(node))
        return HistorySettings(**self.read("history", node, HISTORY_KEYS))

    def _profiles(self, node: Node) -> dict[str, Profile]:
        profiles = {pair.name: self._profile(pair) for pair in fields.mapping_pairs(node)}
        return {name: profile for name, profile in profiles.items() if profile is not None}

    def _profile(self, pair: Pair) -> Profile | None:
        """Return the profile, or None if one of its limits is unreadable: without a limit it would show everything."""
        profile = _SettingReader(self._report, "The profile is ignored")
        said = profile.read(f"profile {shown(pair.name)}", pair.value, PROFILE_KEYS)
        return None if profile.failed else Profile(**said)

    def _wrong(self, pair: Pair, wrong: InvalidValueError) -> None:
        is_limit = snake(pair.name) != "expose"
        self.failed |= is_limit
        if snake(pair.name) == "confine":
            self.unread_limit = True
            hint = f"{wrong.hint}. " if wrong.hint else ""
            message = f"confine {wrong.message}"
            self._report.add(wrong.place, message, f"{hint}Until then every server is confined")
            return
        hint = wrong.hint or (self._without if is_limit else "") or "The default applies"
        self._report.add(wrong.place, f"{shown(pair.name)} {wrong.message}", hint)

    def _unknown(self, pair: Pair, hint: str) -> None:
        self._report.add(pair.key, f"Unknown setting {shown(pair.name)}", hint)
