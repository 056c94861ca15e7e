"""`multi-mcp add WHAT`: show the server that a text names, ask for missing values, and add it if the user agrees."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from trayapp.cli.find import note_old, own_registry
from trayapp.cli.output import agreed, at_terminal, is_terminal, note, print_json, say, waiting
from trayapp.cli.secret import keep_all, keeps_secrets
from trayapp.cli.shown_server import decisive_lines, unlocked
from trayapp.clients.files import Machine, shown_path
from trayapp.clients.secrets import Secret, secret_name
from trayapp.config.files import make_folder
from trayapp.config.paths import PASSPHRASE, find_paths, user_folders
from trayapp.config.read.command import path_exists, relative_paths
from trayapp.config.read.entry import name_fault, read_one
from trayapp.config.urls import exposure, unsafe_url, unsafe_url_hint, url_fault
from trayapp.model.errors import MultiMcpError, StorageError, UsageError
from trayapp.model.redact import redacted
from trayapp.model.text import count, escape_unprintable, one_line
from trayapp.packages.bundle_archive import BadBundleError, BundleArchive, is_bundle, read_archive, sha256_of, unpack
from trayapp.packages.lock_file import LockedPackage, LockFile
from trayapp.service.secrets import delete_secret, secret_names
from trayapp.service.web import WebError, read_file
from trayapp.sources.bundle import BundlePlace, read_bundle, read_manifest
from trayapp.sources.placeholders import may_be_secret
from trayapp.sources.recognize import is_registry_name, recognize, text_of_link
from trayapp.sources.server_json import OnlyBundlesError, bundles_in, read_server_json, short_name
from trayapp.sources.source import LARGEST, Source, UnclearSourceError, Variable, own_part, with_value

LARGEST_DOWNLOAD = 512 << 20  # the most bytes of one bundle
_PLACES = ("env", "headers")
NAMED = 6  # the most tool names shown for each class of tools
VALUE = "arg."  # prefix of a value's name in the panel's form
_EACH_SESSION = "in the folder of each session, one process for each (scope: session)"
_ANY_ADDRESS = "https://asked.invalid/"  # stands for a value that the user has not given yet
Add = Callable[[str, dict[str, Any]], None]  # adds a server, given its name and entry


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers given in advance.

    `values`: the values that the source asks for, by name. `yes`: do not ask for consent. `called`: the server's name,
    None for the proposed one. `hide`: False to leave secrets in clear text; otherwise they go to the keyring. `pick`:
    the index of the proposal chosen in the panel, None for other callers. `seen`: the proposal's mark when the panel
    showed it.
    """

    values: Mapping[str, str]
    yes: bool
    called: str | None
    hide: bool | None = None
    pick: int | None = None
    seen: str | None = None
    way: int | None = None  # the chosen way to run the server, counted from 1
    as_json: bool = False  # stdout then holds a single document


@dataclass(frozen=True, slots=True)
class Proposal:
    """A server that a text names. `lines`: every fact that decides what would run.

    `warning`: a warning about the server's state in the registry, its address, or a package that is not locked.
    """

    source: Source
    lines: tuple[str, ...]
    warning: str = ""
    bundle: Bundle | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the proposal as JSON, for the panel."""
        source = self.source
        wants = [
            {
                "name": one.name, "secret": one.secret, "required": one.required, "choices": list(one.choices),
                "description": ", ".join(part for part in (one.description, one.hint()) if part),
                "default": one.default, "kind": one.kind,
            }
            for one in asked_of(source)
        ]  # fmt: skip
        return {
            "name": source.name, "kind": source.kind, "description": source.description, "lines": list(self.lines),
            "wants": wants, "tools": list(tool_lines(source)),
            "left_out": list(source.left_out), "run_first": list(map(redacted, source.run_first)),
            "warning": self.warning, "seen": self.mark(),
        }  # fmt: skip

    def mark(self) -> str:
        """Return a hash of what the user sees: the name, what would run, and the values to ask for.

        A proposal is added only if its mark is still the one that the user saw.
        """
        source = self.source
        shown = [source.name, self.lines, [(one.name, one.keys, one.secret) for one in source.wants]]
        return hashlib.sha256(json.dumps(shown).encode()).hexdigest()


def add_source(what: str, answers: Answers, add: Add) -> None:
    """Add the servers that `what` names: a text, a file with the text, a name in the registry, or "-" for stdin.

    Raises UnclearSourceError, and UsageError for answers that do not fit, or that are missing if nobody can be asked.
    """
    found, are_ways = proposals(what, here=answers.pick is None)
    if answers.pick is not None:
        found = found[answers.pick : answers.pick + 1]
        if not found or found[0].mark() != answers.seen:
            raise UsageError("The server changed after it was shown", "Review it again, then add it")
    elif are_ways:
        found = [_chosen(found, answers)]
    elif answers.way is not None:
        raise UsageError("There is only one way to run it", "Leave out --way")
    _refuse_unknown(answers.values, [one.source for one in found])
    if answers.called and len(found) > 1:
        raise UsageError(f"This describes {count(len(found), 'server')}", "Leave out --as, or paste only one server")
    if len(found) > 1:
        names = ", ".join(one.source.name for one in found)
        (note if answers.as_json else say)(
            one_line(f"This describes {len(found)} servers. They are added one after the other: {names}")
        )
    for proposal in found:
        _add_one(proposal, answers, add)


def _refuse_unknown(values: Mapping[str, str], sources: Sequence[Source]) -> None:
    """Raise UsageError for a value whose name no source uses, because the value would be ignored."""
    known = list(dict.fromkeys(name for source in sources for name in [one.name for one in asked_of(source)]))
    own = {name for source in sources for place in _PLACES for name in source.entry.get(place) or {}}
    unknown = next((name for name in values if name not in own and name not in known), None)
    if unknown is not None:
        names = ", ".join(one.name for one in sources)
        takes = ", ".join([*known, *sorted(own - {*known})])
        raise UsageError(
            one_line(f"{names} takes no {unknown}"),
            one_line(f"It takes: {takes}" if takes else "Leave out --set: the server takes no values"),
        )


def _with_given(source: Source, values: Mapping[str, str]) -> Source:
    """Return the source, which also asks for each of its variables and headers that `values` names."""
    asked = {one.name for one in source.wants}
    more = [
        Variable(name, (place, name), "", secret=may_be_secret(name, ""), required=False)
        for place in _PLACES
        for name in source.entry.get(place) or {}
        if name in values and name not in asked
    ]
    return replace(source, wants=(*more, *source.wants)) if more else source


def _chosen(found: list[Proposal], answers: Answers) -> Proposal:
    """Return the way to run a server: the one of --way, the user's choice at a terminal, or else the first one.

    Raises UsageError if --way is out of range.
    """
    way = answers.way
    if way is None and len(found) > 1:
        note(f"There are {len(found)} ways to run it:")
        note(*(one_line(f"  {number}: {one.lines[0]}") for number, one in enumerate(found, 1)))
        if answers.yes or not at_terminal():
            note("Using the first one. To choose another one, add --way NUMBER")
        else:
            way = click.prompt("Which one", default=1, type=click.IntRange(1, len(found)))
    if way is not None and not 1 <= way <= len(found):
        raise UsageError(f"There is no way {way} to run it: the last is {len(found)}", "Choose one with --way NUMBER")
    return found[(way or 1) - 1]


def preview_source(what: str, *, as_json: bool, here: bool = True) -> None:
    """Print what `add` would add, and what would run. Nothing is written or started. `here`: as for `proposals`."""
    found, are_ways = proposals(what, here=here)
    if as_json:
        print_json({"servers": [one.as_json() for one in found], "ways": are_ways})
        return
    for proposal in found:
        _show(proposal.source.name, proposal, say, here=here)


def read_form(text: str) -> tuple[str, Answers]:
    """Return the source text and the answers from a form of the panel (JSON). Raises UsageError.

    The form arrives on stdin: other processes can read command-line arguments, which would expose its secrets.
    """
    try:
        form = json.loads(text)
        values = {str(name): str(value) for name, value in form.get("values", {}).items()}
        called, pick = form.get("name") or None, max(0, int(form.get("pick", 0)))
        return str(form["what"]), Answers(values, True, called, True, pick, form.get("seen"), as_json=True)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UsageError("This form did not come from the panel", "Reload the page and try again") from None


def proposals(what: str, *, here: bool = True) -> tuple[list[Proposal], bool]:
    """Return the servers that `what` names (as for `add_source`), and True if they are the ways to run a single server.

    `here`: accept paths relative to the current folder. False for the panel, which has no current folder.
    """
    machine = Machine()
    what = text_of_link(what)
    if (path := _file_of(what.strip())) is not None and is_bundle(path):
        bundle = read_bundle_file(path.absolute())
        return [Proposal(bundle.source, _decides(bundle.source), bundle=bundle)], False
    text = text_of_link(_text_of(what))
    if is_registry_name(text):
        return _of_registry(text.strip()), True

    def exists(path: str) -> bool:
        return (here or Path(path).is_absolute()) and path_exists(path)

    try:
        found = recognize(text, machine.home, windows=machine.platform == "win32", exists=exists)
    except OnlyBundlesError as error:
        return list(_of_bundles(error)), True
    are_ways = len(found) > 1 and found[0].kind.startswith("server.json")
    return [_proposal(one) for one in found], are_ways


def _proposal(source: Source, warning: str = "") -> Proposal:
    """Return the proposal for a source. Warnings about its address and its package are appended to `warning`."""
    lines, url = _decides(source), source.entry.get("url")
    told = exposure(url) if isinstance(url, str) and not any(one.keys == ("url",) for one in source.wants) else None
    return Proposal(source, lines, ". ".join(filter(None, (warning, told, unlocked(source.entry)))))


def _of_registry(text: str) -> list[Proposal]:
    """Ask the registry for a server and return the ways to run it. Raises MultiMcpError if it was deleted there."""
    name, _, version = text.partition("@")
    with waiting("Asking the registry"):
        answer = own_registry().entry(name, version)
    note_old(answer)
    (entry,) = answer.entries
    reason = f": {entry.status_message}" if entry.status_message else ""
    if entry.status == "deleted":
        raise MultiMcpError(
            f"{entry.name} was deleted from the registry{reason}", "Look for another one: multi-mcp find"
        )
    warning = f"Its author calls it deprecated{reason}" if entry.status == "deprecated" else ""
    usable: list[Proposal] = []
    fault: MultiMcpError | None = None
    try:
        found = read_server_json(entry.document, f"{entry.name} {entry.version}, from the registry")
    except OnlyBundlesError as error:
        return list(_of_bundles(error, warning))
    for one in found:
        try:
            usable.append(_proposal(one, warning))
        except UnclearSourceError as error:  # another way may be usable
            fault = error
    if not usable and (pairs := bundles_in(entry.document)):
        return list(_of_bundles(OnlyBundlesError(entry.name, pairs), warning))
    if not usable and fault is not None:
        raise fault
    return usable


def _of_bundles(offer: OnlyBundlesError, warning: str = "") -> Iterator[Proposal]:
    """Yield a proposal for each bundle that a server offers. The bundles are fetched, and nothing in them is run."""
    for url, digest in offer.bundles:
        bundle = read_bundle_file(fetch_bundle(url, digest))
        source = replace(bundle.source, name=short_name(offer.name))
        yield Proposal(source, _decides(source), warning, bundle)


def _text_of(what: str) -> str:
    if what == "-":
        return sys.stdin.read(LARGEST + 1)
    if (path := _file_of(what)) is None:
        return what
    try:
        if path.stat().st_size > LARGEST:
            raise UnclearSourceError(f"{path} is too large", "Paste the server's own snippet")
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):  # the file is not readable as text
        return what


def _file_of(what: str) -> Path | None:
    """Return the path of the file that a text names; None if the text is not the path of a file, such as a URL."""
    try:
        path = Path(what).expanduser()
        return path if len(what) < 4096 and "\n" not in what and path.is_file() else None
    except (OSError, ValueError, RuntimeError):
        return None


def _add_one(proposal: Proposal, answers: Answers, add: Add) -> None:
    source = proposal.source
    name = answers.called or source.name
    fault = name_fault(name)
    if fault:
        raise UsageError(fault, "Pass a name: --as NAME", field="name")
    tell = note if answers.as_json else say
    _show(name, proposal, tell, here=answers.pick is None)
    source = _with_given(source, answers.values)
    wants = asked_of(source)
    missing = [one for one in wants if one.required and not (answers.values.get(one.name) or one.default)]
    if missing and not at_terminal():
        names = ", ".join(one.name for one in missing)
        hint = f"Pass each value: --set {missing[0].name}=..."
        raise UsageError(f"{name} needs {names}", hint, field=VALUE + missing[0].name)
    if not answers.yes and not agreed("Add it? It will be started once to list its tools."):
        tell(f"Not added: {one_line(name)}")
        return
    asked = [one.name for one in missing if one.secret]
    if asked and answers.hide is not False and not keeps_secrets():  # refuse before the user types a secret
        raise MultiMcpError(
            one_line(f"{count(len(asked), 'secret')} not kept: there is no keyring ({', '.join(asked)})"),
            f"Install gnome-keyring, KWallet or KeePassXC, or set token_store: file in servers.yaml and {PASSPHRASE}"
            " in the environment of the gateway, or pass --clear",
        )
    entry, kept = _filled(name, source, answers)
    try:
        _written(name, entry, proposal, add)
    except MultiMcpError:
        for secret in kept:  # the server was not added, so nothing refers to its secrets
            delete_secret(secret)
        raise


def _written(name: str, entry: dict[str, Any], proposal: Proposal, add: Add) -> None:
    """Add a server with `add`, and unpack its bundle. Raises UsageError for an invalid URL, and MultiMcpError."""
    source = proposal.source
    if isinstance(url := entry.get("url"), str) and (fault := url_fault(url)):
        of_url = next((VALUE + one.name for one in source.wants if one.keys == ("url",)), "")
        raise UsageError(f"The url of {name} {fault}", "Give another URL", field=of_url)
    if isinstance(url, str) and (told := exposure(url)) and told not in proposal.warning:
        note(one_line(f"{name}: {told}"))
    if proposal.bundle is None:
        add(name, entry)
    else:
        with proposal.bundle.unpacked(name):
            add(name, entry)


def _decides(source: Source) -> tuple[str, ...]:
    """Return lines with every fact that decides what would run. Raises UnclearSourceError for an unusable server."""
    name, entry = source.name, source.entry
    for one in reversed(source.wants):  # leave out optional values that have no default
        if not (one.required or one.shared or one.default) and (one.keys[0] == "args" or not one.placeholder):
            entry = with_value(entry, one, "")
    if fault := name_fault(name):
        raise UnclearSourceError(fault, "Give it another name, then add it again")
    if str(entry.get("command", "")).startswith("-"):
        raise UnclearSourceError(f"{name} has an option in place of a program", "Paste the whole command")
    url = entry.get("url")
    asked = any(one.keys == ("url",) for one in source.wants)
    if isinstance(url, str) and not asked and (fault := unsafe_url(url, asks=True)):
        raise UnclearSourceError(f"The url of {name} {fault}", unsafe_url_hint(url))
    # replace the author's placeholder, which need not be a valid address, while the entry is read
    server, problems = read_one(name, entry | ({"url": _ANY_ADDRESS} if asked else {}))
    if server is None:
        raise UnclearSourceError(f"Cannot use {name}: {problems[0].message}", "Correct it, then add it again")
    lines = [line.replace(_ANY_ADDRESS, escape_unprintable(str(url))) for line in decisive_lines(server)]
    return (*lines, _EACH_SESSION) if "command" in entry and entry.get("scope") == "session" else tuple(lines)


def tool_lines(source: Source) -> Iterator[str]:
    """Yield a line for each class of tools (read, write, destructive), with those that the author lists."""
    from trayapp.catalog.tool_class import ToolClass, classify  # imported late: few sources name their tools

    names: dict[ToolClass, list[str]] = {"read": [], "write": [], "destructive": []}
    for tool in source.tools:
        names[classify(dict(tool)).tool_class].append(str(tool.get("name")))
    verbs: tuple[tuple[ToolClass, str], ...] = (
        ("read", "read"), ("write", "write"), ("destructive", "delete or overwrite data, or run commands"),
    )  # fmt: skip
    for key, verb in verbs:
        found = names[key]
        if found:
            more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
            yield one_line(f"{count(len(found), 'tool')} that can {verb}: {', '.join(found[:NAMED])}{more}")
    if source.tools and source.more_tools:
        yield "and more tools, known only once it runs"


def _show(name: str, proposal: Proposal, tell: Callable[..., None], *, here: bool) -> None:
    """Print a proposal with `tell`: every fact that decides what would run, its tools, and the values that it needs.

    `here`: print the current folder if a command with relative paths would run in it.
    """
    source = proposal.source
    words = [str(word) for word in source.entry.get("args") or []]
    decided = {"url", "cwd", "scope"} & {*source.entry, *(one.keys[0] for one in source.wants)}
    runs_here = here and not decided and relative_paths(str(source.entry.get("command")), words)
    tell(one_line(f"{name}: {source.kind}" + (f": {source.description}" if source.description else "")))
    if proposal.warning:
        tell("  " + one_line(proposal.warning))
    tell(*(f"  {line}" for line in (*proposal.lines, *tool_lines(source))))
    if runs_here:
        tell("  " + one_line(f"in the folder {shown_path(Path.cwd(), Machine().home)}"))
    tell(*("  " + one_line(f"run this first, if needed: {redacted(line)}") for line in source.run_first))
    for one in asked_of(source):
        kind = "secret" if one.secret else "path" if one.kind == "path" else "value"
        notes = [one.description, one.hint(), f"by default {one.default}" if one.default else ""]
        why = f": {', '.join(part for part in notes if part)}" if any(notes) else ""
        what = f"a {kind} in place of" if one.name == one.placeholder else f"the {kind}"
        tell("  " + one_line(f"needs {what} {one.name}{'' if one.required else ' (optional)'}{why}"))
    if source.left_out:
        tell("  " + one_line(f"leaves out {', '.join(source.left_out)}, which multi-mcp does not use for this server"))


def _filled(name: str, source: Source, answers: Answers) -> tuple[dict[str, Any], list[str]]:
    """Return the entry with the user's values, and the names of the secrets put into the keyring (none with --clear).

    Raises UsageError for an invalid value. Raises MultiMcpError if a secret cannot be kept: none must end up in a file
    by accident.
    """
    given = answers.values
    values = {
        variable: _checked(source, variable, given[variable.name])
        if variable.name in given
        else own_part(source, variable, _asked(variable))
        for variable in asked_of(source)
    }
    secret = {variable: value for variable, value in values.items() if variable.secret and value}
    kept = _kept(name, secret) if secret and answers.hide is not False else {}
    shared = {variable.name: variable for variable in values if variable.shared}
    entry = source.entry
    for place in reversed(source.wants):  # from the end: a value may become several words
        variable = shared.get(place.name, place)
        entry = with_value(entry, place, kept.get(variable, values[variable]))
    return entry, [reference.removeprefix("${keyring:").removesuffix("}") for reference in kept.values()]


def _checked(source: Source, variable: Variable, text: str) -> str:
    """Return a given value without the text around its placeholder in the entry (see `own_part`).

    Raises UsageError for an invalid value. The error's `field` names its field in the panel's form.
    """
    try:
        return variable.checked(own_part(source, variable, text))
    except UsageError as error:
        error.field = VALUE + variable.name
        raise


def asked_of(source: Source) -> list[Variable]:
    """Return the values to ask for. A value that several places share is listed once."""
    first = {one.name: one for one in reversed(source.wants) if one.shared}
    return [one for one in source.wants if not one.shared or first[one.name] is one]


def _kept(name: str, values: Mapping[Variable, str]) -> dict[Variable, str]:
    """Put secrets into the keyring under free names, and return their references by variable.

    Raises MultiMcpError if one cannot be kept.
    """
    taken: list[str] = []
    with suppress(MultiMcpError):  # keep_all reports the problem
        taken += secret_names()
    secrets = {}
    for variable, value in values.items():
        free = plain = secret_name(name, variable.name.strip("<>{}[]$%") or "secret")
        number = 1
        while free in taken:
            number += 1
            free = f"{plain}-{number}"
        taken.append(free)
        secrets[variable] = Secret(free, variable.name, value)
    keep_all(list(secrets.values()), insist=True)
    return {variable: f"${{keyring:{secret.name}}}" for variable, secret in secrets.items()}


def _asked(variable: Variable) -> str:
    """Return a value that the user types, asking until it is well-formed. Without a terminal, return its default.

    Raises UsageError if the default is not well-formed.
    """
    if not is_terminal(sys.stdin):
        return variable.checked(variable.default)
    kind = click.Choice(variable.choices) if variable.choices and variable.required else None
    default = variable.default or ("" if not variable.required else None)
    lead = "In place of " if variable.name == variable.placeholder else ""
    notes = () if variable.required else ("optional", *variable.choices)  # click.Choice accepts no empty answer
    label = one_line(f"{lead}{variable.name}" + (f" ({', '.join(notes)})" if notes else ""))
    while True:
        answer: str = click.prompt(
            label, default=default, hide_input=variable.secret, type=kind,
            show_default=bool(variable.default and not variable.secret),
        )  # fmt: skip
        try:
            return variable.checked(answer)
        except UsageError as error:
            note(one_line(f"{error.title}. {error.hint}"))


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle that was read. `folder`: where to unpack it, named after the hash of its file."""

    archive: BundleArchive
    locked: LockedPackage
    folder: Path
    source: Source

    @contextmanager
    def unpacked(self, server: str) -> Iterator[None]:
        """Unpack the bundle, run the block, then record the bundle in servers.lock. Raises MultiMcpError.

        If the block or the recording fails, remove the folder, unless it existed before.
        """
        there = self.folder.is_dir()
        unpack(self.archive, self.folder)
        try:
            yield
            file = LockFile(find_paths(os.environ).lock_file)
            file.put(server, f"mcpb:{self.locked.package}", self.locked)
        except BaseException:
            if not there:
                shutil.rmtree(self.folder, ignore_errors=True)
            raise


def fetch_bundle(url: str, digest: str) -> Path:
    """Return the path of a bundle that a server.json names. Download the file unless it is in the cache.

    `digest`: the SHA-256 that the file must have. Raises MultiMcpError, also for another digest.
    """
    folder = find_paths(os.environ).cache_dir / "bundles"
    path = folder / f"{digest}.mcpb"
    if path.is_file() and sha256_of(path) == digest:
        return path
    try:
        make_folder(folder)
        with tempfile.TemporaryDirectory(dir=folder, prefix="new-") as made:
            new = Path(made, "bundle")
            with waiting(f"Fetching {url}"), new.open("wb") as file:
                read_file(url, file, LARGEST_DOWNLOAD)
            if sha256_of(new) != digest:
                raise BadBundleError(
                    f"{url} is not the file that its server.json describes", "Do not use it; ask its author"
                )
            new.replace(path)
    except WebError as error:
        raise MultiMcpError(f"Cannot fetch {url}: {error.title}", "Try again later") from None
    except OSError as error:
        hint = "Free some space, or check the folder's permissions"
        raise StorageError(f"Cannot keep {url}: {error.strerror}", hint) from None
    return path


def read_bundle_file(path: Path) -> Bundle:
    """Read a bundle's file and return the bundle. Nothing is unpacked. Raises BadBundleError, UnclearSourceError."""
    archive = read_archive(path)
    manifest = read_manifest(archive.manifest)
    locked = archive.locked(manifest.name, manifest.version)
    folder = find_paths(os.environ).packages_dir / locked.folder_name
    machine = Machine()
    programs = frozenset(name for name in ("python", "python3") if shutil.which(name))
    folders = user_folders(machine.home)
    place = BundlePlace(str(folder), archive.files, folders, machine.platform, programs)
    return Bundle(archive, locked, folder, read_bundle(manifest, place, archive.sha256, signed=archive.signed))
