"""Recognize the server that a text names, in any form. Nothing is started, fetched or written.

Install links are clients' own URI schemes, and the web pages that redirect to them. Sources:
cursor.com/docs/context/mcp/install-links, code.visualstudio.com/api/extension-guides/ai/mcp (vscode:mcp/install),
lmstudio.ai/docs/app/mcp/deeplink, block.github.io/goose (goose://extension), kiro.dev/docs/mcp (launch/mcp/add).
"""

from __future__ import annotations

import base64
import binascii
import html
import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, groupby, islice, takewhile
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from urllib.request import url2pathname

from trayapp.clients import jsonc
from trayapp.clients.conversion import inputs_of
from trayapp.config.problems import UnparsableError
from trayapp.config.urls import outside_containers, unsafe_url, unsafe_url_hint
from trayapp.model.redact import redacted
from trayapp.sources.command_lines import (
    holds_command,
    holds_only_commands,
    is_command_line,
    read_command_line,
    refuse_long_lines,
    without_prompt,
)
from trayapp.sources.documents import is_tool_argument, read_document
from trayapp.sources.folders import with_folder, with_home, with_paths_of_others
from trayapp.sources.placeholders import may_be_secret
from trayapp.sources.programs import name_for
from trayapp.sources.server_json import is_server_json, read_server_json, short_name
from trayapp.sources.source import (
    LARGEST,
    Entry,
    Source,
    TemplateError,
    UnclearSourceError,
    Variable,
    given_names,
    refuse_large,
    source_of,
    start_of,
    wanted,
    with_variants,
    with_words_apart,
)

PARTS_MOST = 20  # most snippets to read from one text, such as a README
SCHEMES = (
    "cursor", "vscode", "vscode-insiders", "vscodium", "lmstudio", "goose", "kiro", "trae", "trae-cn", "raycast",
    "cherrystudio", "multi-mcp",
)  # fmt: skip
_PAGES = re.compile(
    r"https://(?:(?:www\.)?cursor\.com/(?:[A-Za-z-]+/)?install-mcp|(?:insiders\.)?vscode\.dev/redirect(?:/mcp/install)?"
    r"|(?:files\.)?lmstudio\.ai/install-mcp|kiro\.dev/launch/mcp/add|vs-open\.link/(?:[\w-]+/)?mcp-install)\?"
)
# A page with a configuration in its address: `https://claude.ai/mcp/install?name=a&config=...`. A server's own
# address, which ends in /mcp or /sse, may hold its settings in the same way.
_CONFIGURED = re.compile(r"https://(?![^\s?]*/(?:mcp|sse)/?\?)[^\s?#]+\?(?:[^\s#]*&)?config=\S+")
# An install link in Markdown or HTML.
_LINKS = re.compile(rf"(?:(?:{'|'.join(SCHEMES)}):(?://)?|{_PAGES.pattern})[^\s\"'<>)\]]+", re.IGNORECASE)
_DEFAULT = re.compile(r"true|false|\d+", re.IGNORECASE)
_TAGS = re.compile(r"</?(?:pre|code)(?: [^<>]*)?>")
_ENTITY = re.compile("&(?:quot|amp|lt|gt|#34|#39|#x27);")
_NOT_IN_NAME = re.compile(r"[/\x00-\x1f\x7f]+")
_NO_NAME = re.compile(r"<[^<>]+>|\{[^{}]+\}").fullmatch  # matches the author's placeholder for a name
_COMMENTS = re.compile(r"\A(?:[ \t]*(?:#|//)[^\n]*(?:\n\s*|\Z))+")
_IS_COMMENTED = re.compile(r"[^\n]*(?:(?:\n[ \t]*#[^\n]*)+|(?:\n[ \t]*\*(?:[ \t][^\n]*)?)+)").fullmatch
_LAUNCHES = re.compile(r"""["'\s{](?:command|cmd|url|uri|serverUrl|server_url|httpUrl)["']?\s*:""")
# How a line of prose begins: as a heading, table row or list item, or with a capital letter or a letter beyond ASCII.
_SENTENCE = re.compile(
    r"(?:#{2,6}\s|[>|<]|\*\*|!?\[[^\]]+\]\(|[-=*_]{3,}$|[*+\u2022]\s|(?:-|\d+[.)])\s+(?:[A-Z*`\[]|[^\x00-\x7f])"
    r"|[A-Z][A-Za-z'\u2019-]*(?:[ ,.:;!?(]|$)|(?![A-Za-z_][\w.-]*:\s)[^\"'=]*[^\x00-\x7f][^\"'=]*$|`[^`]*`.*[^`]$"
    r"|(?:or|and|then|for|with|in|if)\b(?!.*=))"
)
_KEY = re.compile(r"[\w.\"-]+\s*([=:])")  # a key of TOML or YAML
_ADDING = re.compile(r"(?<!/)\bmcp add(?:-json)? +\S|(?:mcp|context)_?servers", re.IGNORECASE)
_CODE = re.compile(r"(?<!`)`(?![~./])([^`\n]{3,2000})`(?!`)")  # a code span in a sentence, but not a path
_WRAPPED_CODE = re.compile(r"(?<!`)`(?![~./])([^`\n]{3,200}\n[ \t]*[^`\n]{1,200})`(?!`)")  # a code span over two lines
_FENCES = re.compile(r"[\s>*+-]*(?:```|~~~)")  # a fence, also in a list or a quotation
_FENCE = re.compile(r"(?s)\A\s*```[^\n]*\n(.*?)\n\s*```\s*\Z")
# A text that a shell writes to a file: `cat > FILE <<EOF`, `echo '...' > FILE`.
_HERE = re.compile(r"\b(?:cat|tee)\b.{0,200}?<<-? *['\"]?(\w+)")
_ECHOED = re.compile(
    r"""(?sx) \A (?: mkdir\ [^\n&]*(?:&&|\n)\s* )* [$%]?\s* (?P<by>echo(?:\ -e)?|printf)\ +
    (?: '(?P<plain>[^']*)' | "(?P<quoted>(?:[^"\\]|\\.)*)" ) \s* (?:>{1,2}|\|\s*(?:sudo\ +)?tee\b) [^\n]* \Z"""
)
_ADDED_LINE = re.compile(r"(?m)^\+\s*[\w\"'{}\[]")
_FRONT_MATTER = re.compile(r"(?s)\A---\n(.*?)\n---(?:\n|\Z)")  # the front matter of an agent's instruction file
# The first words of a program's source code.
_PROGRAM = re.compile(
    r"""(?mx) \s*(?:
      (?P<script>import\s[\w{}*, $]+\sfrom\s["'] | import\s["'] | export\s(?:default|const|async|function|class)\b
        | (?:const|let|var)\s[\w{}\[\], $]+(?::\s*[\w<>\[\]., ]+)?\s*=\s
        | module\.exports\b | (?:async\s)?function\s\w+\( | (?:return\s)?await\s[\w.]+\()
    | (?P<python>from\s[\w.]+\simport\s | import\s[\w.]+(?:\sas\s\w+)?\s*$ | (?:async\s)?def\s\w+\( | async\swith\s
        | \w+\s=\s(?:await\s)?[A-Z]\w+\()
    )"""
)
_PACKAGE = re.compile(r"(npm|pypi|oci|docker):([\w@][\w@./:+~^=-]*)")
_BUNDLE = re.compile(r"[^\n{}]{1,1000}\.(?:mcpb|dxt)", re.IGNORECASE)
# A setting as people list it for a dialog: `- **Command:** `npx``.
_LABEL = re.compile(
    r"\s*(?:[-*\u2022|]|\d+[.)])?\s*\**(?:(?:mcp|server|remote|connection|custom) )*"
    r"(name|command|arg(?:ument)?s|url|endpoint|address|type|transport(?: type)?|headers?"
    r"|env(?:ironment)?(?: variables?)?|auth(?:entication|orization)?"
    r"|description|field|-+)\**\s*[:=\uff1a|]\s*\**\s*`?([^`\n|]*)`?[.,]?[\s|]*",
    re.IGNORECASE,
)
_WHOLE_QUOTED = re.compile(r"""\A(?:(["'])(?=[^"']*\1\Z)|<)(.*)["'>]\Z""")
# A line around a command or address: `Claude Code: claude mcp add ...`, `<https://...>`, `https://... (HTTP)`.
_INTRODUCED = re.compile(
    r"(?:[-*]\s+)?(?:[A-Z][\w ()/.-]{1,40}:\s+)?"
    r"(?:\"([^\n\"]+)\"|\u201c([^\n\u201d]+)\u201d|<([^\n<>]+)>|([^\n\"\u201c<>]{3,2000}?))(?: \([\w ]+\))?"
)
_SCOPED = re.compile(r"@[\w.~-]+/[\w.~-]+(?:@[\w.+~^-]+)?")  # only npm's form of a package name
# Pages about a package, recognized by their path, and pages for people: not addresses of servers
_PACKAGE_PAGE = re.compile(
    r"https?://(?:www\.)?(?:npmjs\.com/package|pypi\.org/project)/.+|https?://[^/?#]+/(?:package/(?:@[\w.~-]+/)?|project/)(?!(?:mcp|sse)(?:[/?#]|$))[\w.~-]+/?(?:[?#].*)?"
)
_PAGE = re.compile(
    r"https?://(?:(?:www\.)?(?:github\.com|mcp\.so|claude\.ai|chatgpt\.com|pulsemcp\.com|mcpservers\.org)"
    r"|hub\.docker\.com|registry\.modelcontextprotocol\.io|marketplace\.visualstudio\.com|(?:insiders\.)?vscode\.dev|(?:www\.)?cursor\.com|gist\.github\.com|raw\.githubusercontent\.com|(?:www\.)?smithery\.ai/servers?"
    r"|(?:www\.)?glama\.ai/mcp/servers|img\.shields\.io)(?:[/?#].*)?|https?://[^?#]+\.(?:svg|png|jpe?g|gif|pdf)(?:[?#].*)?"
)
_URL = re.compile(r"https?://[^\s<>\"'`)\]]+")
_NOTE = re.compile(r"(?!.* --)[^\n{}=$|\"]{0,400}")  # a sentence around an address
_ENDPOINT = re.compile(r"(?i)^https?://(?!docs?\.)(?:mcp\.|.*/(?:mcp|sse)(?:[/?#]|$))")  # a server's address
_REGISTRY_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]*\.)+[a-z0-9-]+/[\w.-]+(?:@[\w.+-]+)?", re.IGNORECASE)
_DOCUMENT = re.compile(
    r"""\A\s*(?:\{|\[?\s*"(?:npx|uvx|docker|node|uv|python3?|bunx)"\s*,|(["'])[^"'\n]*\1\s*[:=]|\u201c[^\u201d\n]*\u201d\s*:|[\w.-]+\s*[:=]\s*\{|\[\s*\{"""
    r"""|\[{1,2}[\w."' -]+\]|(?:mcpServers|mcp_servers|servers|extensions|mcp)\s*:)"""
)
_TOML_TABLE = re.compile(
    r"(?m)^\s*\[(?:[\w\"'-]+\.)*mcp[\w-]*\.[^\[\]\n]+\]\s*(?:#.*)?$"
)  # a table below a client's settings
_YAML_KEY = re.compile(
    r"""(?m)(?:^|[\s{\[,])["']?(?:[\w.-]*mcp[\w.-]*|servers|extensions|command|cmd|url|uri)["']?\s*:"""
)


def recognize(
    text: str, home: Path, *, windows: bool = False, exists: Callable[[str], bool] = lambda path: True
) -> list[Source]:
    """Return the servers that a text names, the alternatives of a server.json best first. Raises UnclearSourceError.

    `exists`: returns True if a path is on this machine.
    """
    if len(text) > LARGEST:
        raise UnclearSourceError(f"This has {len(text):,} characters, too many", "Paste the server's own snippet")
    text = _TAGS.sub("\n", text) if "</code>" in text or "</pre>" in text else text  # copied HTML
    text = html.unescape(text) if _ENTITY.search(text) else text
    if any(letter in text for letter in "\0\u202a\u202b\u202d\u202e\u2066\u2067\u2068"):
        raise UnclearSourceError("This has characters that change the order of the shown text", "Type it by hand")
    try:
        found = _recognized(text, home, windows=windows)
    except TemplateError:
        raise
    except UnclearSourceError as error:
        try:
            if not (found := _in_parts(text, home, windows=windows)):
                raise error
        except UnclearSourceError as inner:
            raise _program_error(text) or inner from None
    made: list[Source] = []
    for one in found:
        # no name can be derived from a command, package or URL that is a placeholder itself
        has_no_name = _NO_NAME(one.name) and not {"command", "package", "url"} & {want.name for want in one.wants}
        name = name_for(one.entry) if has_no_name else one.name
        name = short_name(name) if is_registry_name(name) else _NOT_IN_NAME.sub("-", name)
        one = with_folder(with_home(_with_localhost(one), home), exists)
        made.append(replace(one, name=name, wants=with_paths_of_others(one, home, windows=windows, exists=exists)))
    return made


def _with_localhost(source: Source) -> Source:
    """Return a source with `localhost` in its address in place of a name that exists only inside containers."""
    url = source.entry.get("url")
    if not isinstance(url, str) or (here := outside_containers(url)) == url:
        return source
    kind = f"{source.kind}, with localhost in place of its name inside containers"
    return replace(source, entry={**source.entry, "url": here}, kind=kind)


def _program_error(text: str) -> UnclearSourceError | None:
    """If a text is a program, return an error whose hint names what to paste instead. Otherwise, return None."""
    fenced = _FENCE.match(text)
    if (found := _PROGRAM.match(_without_comments(fenced[1] if fenced else text))) is None:
        return None
    kind = "Python" if found.lastgroup == "python" else "JavaScript or TypeScript"
    urls = {one.rstrip(".,;:") for one in _URL.findall(text)}
    address = [one for one in urls if _ENDPOINT.search(one) and redacted(one) == one]
    hint = "Paste only the server's part: its command with its arguments, or its address"
    hint = f"To add that server, paste its address: {address[0]}" if len(address) == 1 else hint
    return UnclearSourceError(f"This is a program ({kind}), not a configuration", hint)


def _in_parts(text: str, home: Path, *, windows: bool) -> list[Source]:
    """Return the servers of the snippets in a text such as a README, or the server at its only address; [] if none.

    All snippets must start the same server. The snippet with the most variables is used, plus variables of the rest.

    Raises UnclearSourceError if
    - two snippets start different servers, or one sets a variable or header that the result would lack,
    - a snippet that adds a server to a client, the only snippet, or every snippet between fences cannot be read.
    """
    read: list[list[Source]] = []
    fault: UnclearSourceError | None = None
    for parts in (list(islice(each, PARTS_MOST)) for each in _parts(text)):
        read, adding = [], None
        for part in filter(_without_comments, parts):
            try:
                read.append(_recognized(part, home, windows=windows))
            except UnclearSourceError as error:
                adding = adding or (error if _ADDING.search(part) else None)
                fault = fault or (error if len(parts) == 1 or "```" in text else None)
        if read and adding is None:
            break
        read, fault = [], adding or fault
    urls = {found.rstrip(".,;:") for found in _URL.findall(text)}
    is_note = _NOTE.fullmatch(_URL.sub("", text.strip())) is not None and not is_command_line(text)
    if not read and is_note and len(urls) == 1 and _ENDPOINT.search(*urls):
        return _recognized(urls.pop(), home, windows=windows)
    if not read and fault is not None:
        raise fault
    starts = [[start_of(one.entry) for one in found] for found in read]
    if any(one != starts[0] for one in starts):
        names = ", ".join(dict.fromkeys(server.name for one in read for server in one))
        raise UnclearSourceError(f"This shows several ways to run a server, or several servers ({names})", "Paste one")

    def fullness(found: list[Source]) -> tuple[int, bool]:
        """Return a sort key: the number of variables, and then whether the snippet names its servers."""
        count = sum(len(one.wants) + len(one.entry.get("env", {})) for one in found)
        return count, not found[0].kind.startswith("a command line")

    fullest = max(read, key=fullness, default=[])
    found = [with_variants(one, variants) for one, *variants in zip(fullest, *read, strict=True)]
    if any(given_names(way) - given_names(one) for one, *ways in zip(found, *read, strict=True) for way in ways):
        title = f"This shows several ways to run {found[0].name}, with and without a value"
        raise UnclearSourceError(title, "Paste one")
    return found


def _parts(text: str) -> Iterator[Iterator[str]]:
    """Yield the snippets of a text, one iterator for each form, the clearest form first.

    The forms are install links, texts that a shell writes to a file, fenced blocks and objects. In a text without
    fences, they also include code spans, and the lines between sentences.
    """
    configured = (one for one in _URL.findall(text) if not _LINKS.match(one) and is_link(one))
    yield map(html.unescape, chain(_LINKS.findall(text), configured))
    lines = text.splitlines()
    yield _here_texts(lines)
    fences = [at for at, line in enumerate(lines) if _FENCES.match(line)]
    if len(fences) > 1:
        fenced = (lines[first + 1 : last] for first, last in zip(fences[::2], fences[1::2], strict=False))
        yield ("\n".join(line.removeprefix("> ") for line in part) for part in fenced)
    yield _objects(text)
    if len(fences) < 2:
        runs = ("\n".join(run).strip() for is_prose, run in groupby(lines, _ProseLines()) if not is_prose)
        yield filter(None, runs)
        yield (span[1] for span in _CODE.finditer(text))
        yield (re.sub(r"\s+", " ", span[1]) for span in _WRAPPED_CODE.finditer(text))


def _here_texts(lines: Sequence[str]) -> Iterator[str]:
    """Yield the texts that a shell's `cat` or `tee` writes to a file, between `<<EOF` and `EOF`."""
    left = iter(lines)
    for line in left:
        if opened := _HERE.search(line):
            yield "\n".join(takewhile(lambda one, end=opened[1]: one.strip() != end, left))  # type: ignore[misc]


def _objects(text: str) -> Iterator[str]:
    """Yield the outermost objects in a text that have a command or URL key, each with the name before it, if any."""
    first = depth = 0
    for mark in re.finditer(r'(?:"[^"\n]{1,80}"[ \t]*:[ \t]*)?\{|\}', text):
        if mark[0] != "}":
            first = first if depth else mark.start()
            depth += 1
        elif depth:
            depth -= 1
            quoted = text[max(0, first - 1) : first] in ("'", '"')  # the object is a word of a command line
            if not depth and not quoted and _LAUNCHES.search(text, first, mark.end()):
                part = text[first : mark.end()]
                yield re.sub(r"\n[ \t]*[#*]", "\n", part) if _IS_COMMENTED(part) else part
    if depth and _LAUNCHES.search(text, first):
        yield text[first:]  # the closing brace is missing


class _ProseLines:
    """A test for lines of prose (headings, list items, sentences). Call it with the lines of a text in order."""

    def __init__(self) -> None:
        self._before = ""  # the previous line, or "" if that was prose

    def __call__(self, line: str) -> bool:
        indented, line = line[:1].isspace(), without_prompt(line)
        if not line:
            return False
        listed = line.startswith("-") and (self._before.startswith("-") or self._before.endswith(":"))
        goes_on = line.endswith("\\") or self._before.endswith("\\")  # a command over several lines
        key = _KEY.match(line)
        keyed = key is not None and (key[1] == "=" or (indented and self._before != ""))
        ends = line[-1:] in (":", ".", "!", "?") and len(line.split()) > 2 and ": " not in line
        sentence = _SENTENCE.match(line) is not None or (ends and not is_command_line(line))
        prose = sentence and not (listed or goes_on or keyed)
        self._before = "" if prose else line
        return prose


def _recognized(text: str, home: Path, *, windows: bool) -> list[Source]:
    fenced = _FENCE.match(text)
    text = (fenced[1] if fenced else text).strip().strip("`").strip().removeprefix("\ufeff")
    if _ADDED_LINE.search(text):  # a diff
        text = "\n".join(re.sub(r"^[+ ]", "", line) for line in text.splitlines() if line[:1] != "-")
    if not text:
        raise UnclearSourceError("This is empty", "Paste a snippet, a command, a link or an address")
    text = _without_comments(text)
    text = matter[1] if (matter := _FRONT_MATTER.match(text)) else text
    text = _written(text)
    if not text:
        raise UnclearSourceError("This has only comments", "Paste it without the comment signs")
    if is_link(text):
        return read_link(text, home, windows=windows)
    if package := _PACKAGE.fullmatch(text):
        return [_package(package[1], package[2])]
    if _SCOPED.fullmatch(text):
        return [_package("npm", text)]
    if re.fullmatch(r"https?://\S+", text):
        _refuse_page(text)
        if fault := unsafe_url(outside_containers(text), asks=True):
            raise UnclearSourceError(f"This address {fault}", unsafe_url_hint(text))
        entry: Entry = {"url": text} | ({"type": "sse"} if text.split("?")[0].rstrip("/").endswith("/sse") else {})
        return [source_of(entry, "an address")]
    if _BUNDLE.fullmatch(text):
        raise UnclearSourceError(f"There is no file {text}", "Give the path of the bundle")
    if (given := _labelled(text)) is not None:
        if "url" in given:
            _refuse_page(given["url"])
            name, mark, value = given.get("hea", f"Authorization: {given.get('aut', '')}").partition(":")
            headers = {name.strip(): value.strip()} if mark and re.match(r"\S+ \S|\S{12}", value.strip()) else {}
            text = json.dumps({"url": given["url"], "headers": headers})
            found = read_document(text, "a list of settings", home, windows=windows)
        else:
            env = re.sub(r",\s*(?=\w+=)", " ", given.get("env", ""))
            found = read_command_line(f"{env} {given['com']} {given.get('arg', '')}".strip(), home, windows=windows)
        return [replace(one, name=given.get("nam") or one.name, kind="a list of settings") for one in found]
    inner = next(filter(None, rest.groups())) if (rest := _INTRODUCED.fullmatch(text)) else text
    if inner != text and ((" " in inner and is_command_line(inner)) or re.fullmatch(r"https?://\S+", inner)):
        return _recognized(inner, home, windows=windows)
    if _DOCUMENT.match(text) or _TOML_TABLE.search(text):
        if text.startswith("{"):
            document: dict[str, Any] = {}
            with suppress(UnparsableError):
                document = jsonc.read(text, "the text")
            if isinstance(listed := document.get("servers"), list) and len(listed) == 1 and isinstance(listed[0], dict):
                document = listed[0] if is_server_json(listed[0]) else document  # an answer of the registry
            if is_server_json(document):
                refuse_large(len(text))
                return read_server_json(document)
            if is_tool_argument(document):
                raise UnclearSourceError("This command does not look like a server's", "multi-mcp add NAME -- COMMAND")
        return read_document(text, "a snippet", home, windows=windows)
    refuse_long_lines(text.splitlines())
    if is_command_line(text):
        return read_command_line(text, home, windows=windows)
    commands = holds_command(text)
    if "\n" in text and _YAML_KEY.search(text) and not commands:
        return read_document(text, "a snippet", home, windows=windows)
    if commands:  # also if other lines follow, because this error is usually more exact than the one below
        found = read_command_line(text, home, windows=windows)
        if holds_only_commands(text):
            return found
    named = f"Write npm:{text} or pypi:{text} for a package, or use: multi-mcp add NAME -- {text}"
    hint = named if re.fullmatch(r"[\w.-]+", text) else "Paste a snippet, a command, a link or an address"
    raise UnclearSourceError("This describes no known kind of server", hint)


def _written(text: str) -> str:
    """Return the text that `echo` or `printf` writes to a file; any other text unchanged."""
    if (echoed := _ECHOED.match(text)) is None:
        return text
    inner = echoed["plain"] or re.sub(r'\\(["$`\\])', r"\1", echoed["quoted"] or "")
    return (inner if echoed["by"] == "echo" else inner.replace("\\n", "\n")).strip()


def _without_comments(text: str) -> str:
    """Return a text without comment lines at its start and end, such as the output below a command."""
    lines = _COMMENTS.sub("", text).splitlines(keepends=True)
    while len(lines) > 1 and (not lines[-1].strip() or lines[-1].lstrip().startswith(("# ", "//"))):
        lines.pop()
    return "".join(lines).rstrip()


def _labelled(text: str) -> dict[str, str] | None:
    """Return {first three letters of a label: value} for a list such as `Command: npx`; None for another text."""
    read = [_LABEL.fullmatch(line) for line in text.splitlines()[:PARTS_MOST] if line.strip()]
    given = {found[1].lower()[:3]: _WHOLE_QUOTED.sub(r"\2", found[2].strip()) for found in read if found is not None}
    given = {{"end": "url", "add": "url"}.get(key, key): value for key, value in given.items()}
    given |= {"url": re.sub(r"\s+\(.*\)$", "", given["url"])} if "url" in given else {}
    if None in read or "" in given.values() or not ("url" in given or ("com" in given and len(given) > 1)):
        return None
    if "=" in text.partition("http")[0] and "com" not in given and not {"nam", "typ", "tra"} & given.keys():
        return None  # an assignment in a program
    if (words := given.get("arg", "")).startswith("["):
        given["arg"] = shlex.join(part.strip(" \"'") for part in words.strip("[]").split(","))
    return given


def is_registry_name(text: str) -> bool:
    """Return True if a text has the form of a registry name: `io.github.user/server`, optionally with `@version`."""
    return _REGISTRY_NAME.fullmatch(text.strip()) is not None


def _package(kind: str, name: str) -> Source:
    starts = {"npm": ["npx", "-y", name], "pypi": ["uvx", name.replace("==", "@")]}
    command, *args = starts.get(kind, ["docker", "run", "-i", "--rm", name])
    return source_of({"command": command, "args": args}, f"a package ({kind})")


def _refuse_page(url: str) -> None:
    if _PACKAGE_PAGE.fullmatch(url) is not None:
        hint = "Write npm:NAME or pypi:NAME. If it is a server: multi-mcp add NAME --url ADDRESS"
        raise UnclearSourceError("This looks like a package's page, not a server", hint)
    if url.split("?")[0].lower().endswith((".mcpb", ".dxt")):
        raise UnclearSourceError("This is the address of a bundle", "Download it, then add the file")
    if _PAGE.fullmatch(url.lower()) is not None:
        raise UnclearSourceError("This is a page for people, not a server", "Paste the snippet or command it shows")


def is_link(text: str) -> bool:
    """Return True for an install link of a client or of multi-mcp, or a web address with a server in `config`."""
    scheme, mark, _ = text.strip().partition(":")
    if (bool(mark) and scheme.lower() in SCHEMES) or _PAGES.match(text.strip()) is not None:
        return True
    if _CONFIGURED.fullmatch(text.strip()) is None:
        return False
    with suppress(UnclearSourceError, ValueError, RecursionError):
        held = json.loads(_decoded(parse_qs(urlsplit(text.strip()).query)["config"][0]))
        starts = {key: held.get(key) for key in ("command", "mcpServers", "url")} if isinstance(held, dict) else {}
        return bool(starts.get("command") or starts.get("mcpServers") or str(starts.get("url")).startswith("http"))
    return False


def text_of_link(what: str) -> str:
    """Return the text or path in `multi-mcp://add?what=...` or a desktop's `file:` link; any other `what` unchanged."""
    if len(what) >= LARGEST or "\n" in what.strip():
        return what
    parts = urlsplit(what.strip())
    if parts.scheme.lower() == "multi-mcp":
        return parse_qs(parts.query).get("what", [what])[0]
    is_file = parts.scheme.lower() == "file" and parts.netloc in ("", "localhost")
    return url2pathname(parts.path) if is_file else what


def read_link(text: str, home: Path, *, windows: bool) -> list[Source]:
    """Return the servers of an install link. Raises UnclearSourceError."""
    parts = urlsplit(text.strip())
    query = parse_qs(parts.query, keep_blank_values=True)
    if parts.path.startswith("/redirect") and "url" in query:  # a page that redirects to a client's own link
        inner = query["url"][0]
        if not is_link(inner) or inner.startswith("https:"):
            raise UnclearSourceError("This link leads to no server", "Open it, and paste what it shows")
        return read_link(inner, home, windows=windows)
    kind = f"an install link ({parts.scheme if parts.scheme != 'https' else parts.hostname})"
    if parts.scheme == "goose":
        return [_goose(query, kind)]
    name = query.get("name", [""])[0]
    if "config" in query:
        found = read_document(_decoded(query["config"][0]), kind, home, windows=windows, inputs=_inputs(query))
    elif parts.query.startswith(("%7B", "%7b", "{")):  # vscode:mcp/install?{...}
        found = read_document(unquote(parts.query), kind, home, windows=windows)
    elif "servers" in query:  # Cherry Studio
        found = read_document(_decoded(query["servers"][0]), kind, home, windows=windows)
    elif "command" in query:  # an entry whose keys are parameters of the link
        keys = {key: _json_or_text(query[key][0]) for key in ("command", "args", "env") if key in query}
        found = read_document(json.dumps(keys), kind, home, windows=windows, inputs=_inputs(query))
    elif "url" in query:
        found = [source_of({"url": query["url"][0]}, kind)]
    else:
        raise UnclearSourceError("This link contains no server", "Open it, and paste what it shows")
    return [replace(found[0], name=name)] if name and len(found) == 1 else found


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text) if text.startswith(("[", "{")) else text
    except ValueError:
        raise UnclearSourceError("The link's configuration cannot be decoded", "Copy the whole link") from None


def _inputs(query: Mapping[str, list[str]]) -> dict[str, Mapping[str, Any]]:
    """Return the inputs that a link declares beside its configuration; {} if it declares none or they are not JSON."""
    try:
        return inputs_of({"inputs": json.loads(query["inputs"][0])}) if "inputs" in query else {}
    except ValueError:
        return {}


def _decoded(text: str) -> str:
    """Return the JSON of a query parameter, given as plain text or in base64. Raises UnclearSourceError."""
    text = text.strip()
    if text.startswith(("{", "%7B")):
        return unquote(text)
    raw = unquote(text).replace(" ", "+").translate(str.maketrans("-_", "+/"))
    try:
        decoded = base64.b64decode(raw + "=" * (-len(raw) % 4), validate=True).decode()
        return unquote(decoded) if decoded.startswith("%7B") else decoded
    except (binascii.Error, ValueError):
        raise UnclearSourceError("The link's configuration cannot be decoded", "Copy the whole link") from None


def _goose(query: dict[str, list[str]], kind: str) -> Source:
    """Return the server of a link such as `goose://extension?cmd=npx&arg=-y&arg=pkg&env=KEY%3DWhat it is`."""
    entry: Entry
    if "url" in query:
        entry = {"url": query["url"][0]}
        sent = [pair.partition("=") for pair in query.get("header", [])]
        entry |= {"headers": {name: value for name, _, value in sent}} if sent else {}
    elif "cmd" in query:
        entry = with_words_apart({"command": query["cmd"][0], "args": query.get("arg", [])})
    else:
        raise UnclearSourceError("This link contains no server", "Open it, and paste what it shows")
    wants: tuple[Variable, ...] = ()
    for name, _, text in (pair.partition("=") for pair in query.get("env", [])):
        entry.setdefault("env", {})[name] = ""
        why, default = ("", text) if _DEFAULT.fullmatch(text) else (text, "")
        wants += (Variable(name, ("env", name), "", why, secret=may_be_secret(name, ""), default=default),)
    name = query.get("id", query.get("name", [""]))[0] or name_for(entry)
    left_out = ("timeout",) if "timeout" in query else ()
    return Source(name, entry, kind, wants or wanted(entry), left_out, query.get("description", [""])[0])
