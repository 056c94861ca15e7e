"""A request as the reference server's handlers see it, with ways to notify and question the client in both eras."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel

from tests.conformance.reference.samples import Json

_KINDS: dict[str, tuple[type[BaseModel], type[BaseModel], str]] = {
    "elicitation/create": (types.ElicitRequest, types.ElicitResult, "elicitation"),
    "sampling/createMessage": (types.CreateMessageRequest, types.CreateMessageResult, "sampling"),
    "roots/list": (types.ListRootsRequest, types.ListRootsResult, "roots"),
}
_KEY = secrets.token_bytes()


class InputWanted(Exception):
    """Raised to answer a request with questions (2026-07-28, multi round-trip requests)."""

    def __init__(self, questions: Json, state: str | None) -> None:
        super().__init__("input wanted")
        self.result: Json = {"resultType": "input_required", "inputRequests": questions}
        if state is not None:
            self.result["requestState"] = signed(state)


class Asking:
    """A request from a client."""

    def __init__(self, context: ServerRequestContext[Any, Any]) -> None:
        self.context = context
        self.params: Mapping[str, Any] = context.params or {}
        self.modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS

    @property
    def arguments(self) -> Json:
        """The arguments of a tool call or a prompt."""
        return self.params.get("arguments") or {}

    def can(self, method: str) -> bool:
        """True if the client declared the capability that `method` needs."""
        able = self.context.session.client_capabilities
        return able is not None and getattr(able, _KINDS[method][2]) is not None

    def state(self) -> str | None:
        """Return the state that the client sent back, if any. Raises MCPError if its signature is not ours."""
        given = self.params.get("requestState")
        if given is None:
            return None
        words, _, mark = str(given).rpartition(".")
        if not hmac.compare_digest(signed(words), f"{words}.{mark}"):
            raise MCPError(types.INVALID_PARAMS, "The requestState is not one of ours")
        return words

    async def ask(self, questions: Json, state: str | None = None) -> Json:
        """Return the answers, with the keys of the questions. Raises MCPError.

        In the newer era, InputWanted is raised until the client has sent the answers.
        """
        if not self.modern:
            return {key: await self._ask(question) for key, question in questions.items()}
        given = self.params.get("inputResponses") or {}
        if not all(isinstance(given.get(key), Mapping) for key in questions):
            raise InputWanted(questions, state)
        return {key: dict(given[key]) for key in questions}

    async def _ask(self, question: Json) -> Json:
        method = question["method"]
        request, result, _ = _KINDS[method]
        if not self.can(method):
            raise MCPError(types.INVALID_REQUEST, f"The client does not support {method}")
        answer = await self.context.session.send_request(
            request.model_validate(question),  # type: ignore[arg-type]  # one of the three above
            result,
            metadata=ServerMessageMetadata(related_request_id=self.context.request_id),
        )
        return answer.model_dump(by_alias=True, mode="json", exclude_none=True)

    async def log(self, words: str) -> None:
        """Send a log message for this request. Clients of the newer era receive it only if they requested it."""
        related = self.context.request_id
        await self.context.session.send_log_message("info", words, "reference", related_request_id=related)

    async def progress(self, done: float, total: float) -> None:
        """Report the progress of this request if the client sent a progress token."""
        token = (self.params.get("_meta") or {}).get("progressToken")
        if token is not None:
            params = types.ProgressNotificationParams(progress_token=token, progress=done, total=total)
            await self.context.session.send_notification(
                types.ProgressNotification(params=params), related_request_id=self.context.request_id
            )


def signed(words: str) -> str:
    """Return `words` with their signature."""
    return f"{words}.{hmac.new(_KEY, words.encode(), hashlib.sha256).hexdigest()}"
