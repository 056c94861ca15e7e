"""`multi-mcp prompt`. Never here: what the words mean (catalog/test_prompt_line)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import FakeGateway, run_cli
from trayapp.wire.control import PROMPT

RESULT = {"messages": [{"role": "user", "content": {"type": "text", "text": "Plan\x1b[1m it"}}, {"role": "assistant"}]}


@pytest.mark.requirement("prompt-line")
def test_a_prompt_is_printed_message_by_message(home: Path) -> None:
    with FakeGateway(home, {PROMPT: {"server": "b", "prompt": "plan", "result": RESULT}}) as gateway:
        assert run_cli(home, "prompt", "b_plan", "ai", "date=today").stdout == "user:\nPlan it\n\nassistant:\n\n"
        assert json.loads(run_cli(home, "prompt", "b_plan", "--line", "'x y'", "--json").stdout) == RESULT
        assert run_cli(home, "prompt", "b_plan", "x", "--line", "y").returncode == 2
    assert [params["words"] for _, params in gateway.requests] == [["ai", "date=today"], "'x y'"]
