"""Removal of literals from a query: URLs, paths, file names, e-mail addresses, quoted text. None of them says what the
tool does. Never here: words, ranking.
"""

from __future__ import annotations

from trayapp.model.late import late

# A quotation mark opens before a word and closes after one; the mark in `user's` is an apostrophe.
_QUOTED = late(
    r"""`[^`\n]+`|"[^"\n]+"|“[^”\n]+”|„[^“”\n]+[“”]|«[^»\n]+»|(?<![\w'])'[^'\n]+'(?![\w'])|‘[^’\n]+’(?!\w)"""
)
_AROUND = "()[]{}<>,;:!?\"'*"
_LITERAL = late(
    r"(?:[a-z][a-z0-9+.-]*://|www\.|mailto:).+"  # a URL
    r"|[\w-]+(?:\.[\w-]+)+(?::\d+)?/.*"  # a URL without its scheme
    r"|localhost(?::\d+)?(?:/.*)?"
    r"|[^@\s]+@[^@\s]+\.\w+"  # an e-mail address
    r"|(?:~|\.{1,2})?/.+|~|[a-z]:[\\/].*|\\\\.+"  # an absolute path, or one from home or from the current folder
    r"|(?:[^/\\]+[/\\])+(?:[^/\\]*\.\w{1,5})?"  # a relative path, which ends with a file or a separator
    r"|[\w.-]*\w\.(?:"
    r"txt|md|rst|log|csv|tsv|jsonl?|ya?ml|toml|xml|html?|ini|cfg|conf|env|lock|pdf|docx?|xlsx?|pptx?|odt|ods|odp|rtf|"
    r"epub|ipynb|py|tsx?|jsx|mjs|css|scss|java|kt|go|rs|c|h|cpp|hpp|cs|rb|php|swift|sh|ps1|bat|sql|db|sqlite3?|parquet|"
    r"png|jpe?g|gif|svg|webp|bmp|tiff?|ico|heic|psd|mp3|wav|flac|ogg|m4a|mp4|mov|mkv|avi|webm|zip|tar|gz|tgz|7z|rar|"
    r"exe|dmg|iso|bak|tmp|pem|key|crt|tf|proto|stl|glb|obj|ttf|eml|ics|vcf)"  # a file name
)


def without_literals(query: str) -> str:
    """Return `query` without its literal content."""
    kept = (word for word in _QUOTED.sub(" , ", query).split() if not _is_literal(word))
    return " ".join(kept)


def _is_literal(word: str) -> bool:
    return _LITERAL.fullmatch(word.strip(_AROUND).rstrip(".").lower()) is not None
