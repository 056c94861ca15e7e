"""Inspect the parts of a skill that a client reads: unapproved content and hidden text wait for the user.

A skill's entry is inspected like a tool's definition (exposure/approvals). Its files are not read ahead of need
(SEP-2640, lazy retrieval), so each is inspected when a client reads it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from trayapp.inspection.finding import is_held
from trayapp.inspection.inspect import find_concealed
from trayapp.inspection.text import texts_of
from trayapp.model.settings import Settings
from trayapp.wire.messages import INVALID_PARAMS, Reply, RpcError

CHANGED = "The file differs from the one that its skill lists: it is held back until the user approves it"
HIDES = "The skill is held back: it contains text that people cannot see. Tell the user"


class SkillFile:
    """Finish of one reading of a skill's file. `digest`: of the file that its entry lists, None if it lists none.

    `changed` is called when the file differs, so that the entry is requested again.
    """

    def __init__(self, uri: str, digest: str | None, settings: Settings, changed: Callable[[], None]) -> None:
        self._uri = uri
        self._digest = digest
        self._settings = settings
        self._changed = changed

    def __call__(self, reply: Reply) -> Reply:
        """Return the answer, or an error in its place."""
        result = reply.message.get("result")
        contents = result.get("contents") if isinstance(result, dict) else None
        for content in contents if isinstance(contents, list) else ():
            if isinstance(content, dict) and content.get("uri") == self._uri:
                why = self._why_held(content)
                if why:
                    return Reply.of_error(RpcError(INVALID_PARAMS, why, {"uri": self._uri}))
        return reply

    def _why_held(self, content: dict[str, Any]) -> str:
        text, data = content.get("text"), b""
        if isinstance(text, str):
            data = text.encode("utf-8", "surrogatepass")
        else:
            with suppress(binascii.Error, ValueError):
                data = base64.b64decode(str(content.get("blob", "")), validate=True)
        judged = self._digest is not None and self._settings.approve_changes == "ask"
        if judged and f"sha256:{hashlib.sha256(data).hexdigest()}" != self._digest:
            self._changed()
            return CHANGED
        if self._settings.suspicious == "off" or not isinstance(text, str):
            return ""
        return HIDES if is_held(find_concealed([(self._uri, text)])) else ""


class SkillEntry:
    """Finish of skills/get for a skill that its server does not list, and that has not been inspected yet."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def __call__(self, reply: Reply) -> Reply:
        """Return the answer, or an error in its place."""
        result = reply.message.get("result")
        skill = result.get("skill") if isinstance(result, dict) else None
        if self._settings.suspicious == "off" or not isinstance(skill, dict):
            return reply
        held = is_held(find_concealed(texts_of({"annotations": skill.get("frontmatter")})))
        return Reply.of_error(RpcError(INVALID_PARAMS, HIDES)) if held else reply
