"""`multi-mcp help`: the guide that comes with the program, or the help of a verb.

Pages are printed as Markdown, without comments: rendering them would pull a syntax highlighter into the package.
"""

from __future__ import annotations

import re
from difflib import get_close_matches

import click

from trayapp.cli.options import verb
from trayapp.cli.output import say
from trayapp.model.errors import UsageError
from trayapp.service.guide import page, topics

_COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)


@verb("help", "multi-mcp help", "multi-mcp help servers-yaml", json=False)
@click.argument("topic", required=False)
@click.pass_context
def help_verb(context: click.Context, topic: str | None) -> int:
    """Show a page of the guide, or the help of a verb.

    Without TOPIC, list the pages.
    """
    known = topics()
    if topic is None:
        widest = max(map(len, known))
        for name, title in known.items():
            say(f"{name:<{widest}}  {title}")
        return 0
    if topic in known:
        say(_COMMENT.sub("", page(topic)).rstrip())
        return 0
    group = context.parent
    assert group is not None
    assert isinstance(group.command, click.Group)
    command = group.command.get_command(group, topic)
    if command is None:
        near = get_close_matches(topic, [*known, *group.command.list_commands(group)], n=1)
        hint = f"Did you mean {near[0]}? " if near else ""
        raise UsageError(f"The guide has no page {topic}", f"{hint}See: multi-mcp help")
    say(command.get_help(click.Context(command, info_name=topic, parent=group)))
    return 0
