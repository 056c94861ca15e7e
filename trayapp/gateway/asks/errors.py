"""Errors of calls that the user did not allow, and of answers that came too late."""

from __future__ import annotations

from trayapp.model.errors import MultiMcpError

NOTHING_DONE = "Nothing was executed"


class NotAllowedError(MultiMcpError):
    """Raised when a call was not allowed. `model_hint` says what to ask the user."""

    code = "ask_denied"

    def __init__(self, server: str, tool: str, why: str, hint: str, code: str) -> None:
        super().__init__(f"{server}/{tool} was not called: {why}", f"{NOTHING_DONE}. {hint}")
        self.model_hint = self.hint
        self.code = code


def denied(server: str, tool: str) -> NotAllowedError:
    """Return the error of a call that the user refused."""
    hint = "Do not call it again for this; ask the user how to continue"
    return NotAllowedError(server, tool, "the user refused it", hint, "ask_denied")


def timed_out(server: str, tool: str, after_s: float) -> NotAllowedError:
    """Return the error of a call about which the user said nothing."""
    hint = "Tell the user what you want to do, and call it again when they are there"
    return NotAllowedError(server, tool, f"the user did not answer within {after_s:g} s", hint, "ask_timed_out")


def nobody(server: str, tool: str) -> NotAllowedError:
    """Return the error of a call about which nobody can be asked."""
    hint = (
        "Ask the user to start multi-mcp's tray or panel, or to run `multi-mcp asks --watch` in a terminal; "
        "then call it again"
    )
    return NotAllowedError(server, tool, "the user wants to be asked first, and no user is there", hint, "ask_nobody")


def too_many(server: str, tool: str) -> NotAllowedError:
    """Return the error of a call while the user has too many asks to answer."""
    hint = "Wait until the user has answered; do not repeat the call"
    return NotAllowedError(server, tool, "too many calls wait for the user's yes", hint, "ask_too_many")


def taken_away(server: str, tool: str) -> NotAllowedError:
    """Return the error of a call whose tool was taken away while the user was asked."""
    return NotAllowedError(server, tool, "it was removed while the user was asked", "List the tools again", "ask_gone")


class AskOverError(MultiMcpError):
    """Raised for an answer to an ask that is not open: it had no effect."""

    code = "ask_over"

    def __init__(self, ask_id: str, how: str | None) -> None:
        if how is None:
            super().__init__(
                f"No call waits for an answer with the id {ask_id}",
                "It ended, or the gateway was restarted. See: multi-mcp asks",
            )
        else:
            super().__init__(f"{ask_id} is over: {how}", "This answer changed nothing. See: multi-mcp asks")


class UnfitAnswerError(MultiMcpError):
    """Raised for an answer that an ask does not take. The ask stays open."""

    code = "unfit_answer"

    def __init__(self, ask_id: str, answer: str, answers: tuple[str, ...], why: str = "") -> None:
        if why:
            super().__init__(f"The answer does not fit the question: {why}", "It still waits. See: multi-mcp asks")
        else:
            super().__init__(f"{ask_id} cannot be answered with {answer}", f"Its answers: {', '.join(answers)}")
