"""Put a server's question to the user where its client cannot (MCP elicitation, form and URL).

No question is answered automatically: without an answer the server gets an error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from trayapp.config.urls import url_fault
from trayapp.gateway.asks.asks import Asker, Asks, Ending, Question
from trayapp.gateway.asks.preview import shown_text
from trayapp.wire.capabilities import ELICITATION
from trayapp.wire.messages import INVALID_PARAMS, INVALID_REQUEST, Params, RpcError

MESSAGE_LONGEST = 1_000  # characters
STILL_WANTED_S = 1.0  # interval of checks whether the question's call is still waiting


class UserQuestions:
    """Servers' questions to the user of one gateway."""

    def __init__(self, asks: Asks) -> None:
        self._asks = asks

    def can_answer(self, method: str) -> bool:
        """Return True if the user can be asked that question now."""
        return method == ELICITATION and self._asks.someone_is_there and not self._asks.is_full

    async def ask(self, asker: Asker, server: str, params: Params, is_wanted: Callable[[], bool]) -> dict[str, Any]:
        """Ask the user and return an elicitation's result. `is_wanted`: returns False once its call has ended.

        Raises RpcError.
        """
        ended: asyncio.Future[tuple[Ending, dict[str, Any] | None]] = asyncio.get_running_loop().create_future()
        question = read_question(params)
        ask = self._asks.open_question(asker, server, question, lambda *end: ended.set_result(end))
        try:
            while not ended.done():
                await asyncio.wait([ended], timeout=STILL_WANTED_S)
                if not ended.done() and not is_wanted():
                    raise RpcError(INVALID_REQUEST, "The call of this question has ended")
        finally:
            self._asks.withdraw(ask, "its call has ended")
        ending, content = ended.result()
        match ending:
            case "allowed":
                return {"action": "accept"} if question.url else {"action": "accept", "content": content or {}}
            case "denied":
                return {"action": "decline"}
            case _:
                raise RpcError(INVALID_REQUEST, f"The user did not answer within {ask.until - ask.since:g} s")


def read_question(params: Params) -> Question:
    """Return an elicitation's params as a question for people. Raises RpcError."""
    asked = dict(params or {})
    message = shown_text(str(asked.get("message", "")), MESSAGE_LONGEST)
    if asked.get("mode") == "url":
        url = asked.get("url")
        if not isinstance(url, str) or not url.isascii() or not url.isprintable() or url_fault(url):
            raise RpcError(INVALID_PARAMS, "elicitation/create needs the http or https address of a page")
        return Question(message, url=url)
    schema = asked.get("requestedSchema")
    if not isinstance(schema, dict):
        raise RpcError(INVALID_PARAMS, "elicitation/create needs requestedSchema")
    return Question(message, schema)
