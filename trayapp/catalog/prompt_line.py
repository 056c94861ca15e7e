"""Parser for a prompt's arguments, given as a line of words after a command.

Never here: asking a server, names of prompts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trayapp.model.errors import UsageError

# A word is quoted text, or text between white space, of which a part may be quoted: topic="two words". In double
# quotes, \" is a quotation mark if another one closes them. Any other backslash is literal: backslashes are in paths.
_INSIDE = r"""(?:[^"\\]|\\"(?=[^"]*")|\\(?!")|\\(?="[^"]*\Z))*+"""
_WORD = re.compile(rf"""(?:"{_INSIDE}"|'[^']*'|[^\s"']|["'](?=\s|\Z)|["'](?![^"']*["']))+""")
_QUOTED = re.compile(rf""""({_INSIDE})"|'([^']*)'""")
_NAMED = re.compile(r"([A-Za-z_][\w.-]*)=(.*)", re.DOTALL)


def split_line(line: str) -> tuple[list[str], dict[str, str]]:
    """Return the positional words and the `name=value` ones; a word that begins with a quote is never a named one."""
    words = _WORD.findall(line)
    named = {found[1]: _bare(found[2]) for word in words if (found := _NAMED.fullmatch(word))}
    return [_bare(word) for word in words if not _NAMED.fullmatch(word)], named


def split_words(words: Iterable[str]) -> tuple[list[str], dict[str, str]]:
    """Return the same for words that a shell has already split: quotes are literal."""
    words = list(words)
    named = {found[1]: found[2] for word in words if (found := _NAMED.fullmatch(word))}
    return [word for word in words if not _NAMED.fullmatch(word)], named


def prompt_arguments(declared: Any, positional: Sequence[str], named: Mapping[str, str]) -> dict[str, str]:
    """Return the arguments of prompts/get; `declared` as the prompt lists them.

    Named ones count first, declared or not. Positional ones fill the other declared arguments in their order; the last
    of these gets all remaining words. Raises UsageError if one is missing or there are too many.
    """
    items = [item for item in declared if isinstance(item, dict)] if isinstance(declared, list | tuple) else []
    names = [name for item in items if isinstance(name := item.get("name"), str)]
    open_ = [name for name in names if name not in named]
    if positional and not open_:
        takes = f"It takes {', '.join(names)}" if names else "It takes no arguments"
        raise UsageError(f"Nothing is left for {positional[0]}"[:200], takes)
    filled = dict(zip(open_, positional, strict=False))
    if len(positional) > len(open_):
        filled[open_[-1]] = " ".join(positional[len(open_) - 1 :])
    args = {name: {**named, **filled}[name] for name in [*names, *named] if name in named or name in filled}
    missing = [item["name"] for item in items if item.get("required") is True and item.get("name") not in args]
    if missing:
        raise UsageError(f"{', '.join(missing)} missing", f"Write it after the name, or as {missing[0]}=VALUE")
    return args


def _bare(word: str) -> str:
    return _QUOTED.sub(lambda found: found[2] if found[1] is None else found[1].replace('\\"', '"'), word)
