"""The pages of the guide, which comes with the program.

Never here: what they say (packaging/guide), how they are found (service/guide).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import anyio.to_thread
from markdown_it import MarkdownIt
from markdown_it.token import Token

from trayapp.panel.pages import Context, Page, PageNotFoundError
from trayapp.service.guide import page as text_of
from trayapp.service.guide import topics

READER = MarkdownIt("commonmark").enable("table")  # HTML is allowed: the pages are the program's own


async def guide_page(page: Page) -> Context:
    """Show one page of the guide, or the first one."""
    known = await anyio.to_thread.run_sync(topics)
    topic = page.rest or next(iter(known), "")
    if topic not in known:
        raise PageNotFoundError(f"The guide has no page {topic[:200]}", "See: multi-mcp help")
    text = await anyio.to_thread.run_sync(text_of, topic)
    tokens = readable(READER.parse(text))
    return {
        "template": "help.html", "title": known[topic], "topics": known, "topic": topic,
        "sections": sections(tokens), "html": READER.renderer.render(tokens, READER.options, {}),
    }  # fmt: skip


def readable(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens with an anchor on each heading, and with tables that a keyboard can scroll."""
    made: list[Token] = []
    for at, token in enumerate(tokens):
        if token.type == "heading_open":
            token.attrSet("id", anchor(tokens[at + 1].content))
        if token.type == "table_open":
            made.append(Token("div_open", "div", 1, attrs={"class": "table", "tabindex": "0"}))
        made.append(token)
        if token.type == "table_close":
            made.append(Token("div_close", "div", -1))
    return made


def sections(tokens: Sequence[Token]) -> list[tuple[str, str]]:
    """Return the anchor and the heading of each section."""
    found = [(at, token) for at, token in enumerate(tokens) if token.type == "heading_open" and token.tag == "h2"]
    return [(str(token.attrGet("id")), tokens[at + 1].content.replace("`", "")) for at, token in found]


def anchor(words: str) -> str:
    """Return the anchor of a heading, to which links refer: `every-server` for `Every server`."""
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")
