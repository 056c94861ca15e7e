"""One entry of a list that nobody can read costs only itself. Never here: which lists."""

from __future__ import annotations

import json
from typing import Any

import pydantic_core
import pytest

from trayapp.wire.jsonio import LEVELS_MOST, dumps, salvaged, well_formed

GOOD = {"name": "good", "description": 'a "quoted" } text ] \\'}
DEEP = '{"name":"deep","inputSchema":' + '{"properties":' * 5_000 + "{}" + "}" * 5_000 + "}"
ODD = [DEEP, '{"name":"nan","maximum":NaN}', '{"name":"huge","maximum":1e999}', '{"name":"half,}']


@pytest.mark.parametrize("odd", ODD[:3], ids=["deep", "nan", "huge"])
def test_the_other_entries_are_kept(odd: str) -> None:
    frame = f'{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{json.dumps(GOOD)},{odd},{json.dumps(GOOD)}]}}}}'
    assert salvaged(frame.encode()) == {"jsonrpc": "2.0", "id": 1, "result": {"tools": [GOOD, None, GOOD]}}


@pytest.mark.parametrize("frame", ["", "{", "[]", '{"result":{"tools":[{"a":1}]', ODD[3]])
def test_what_is_no_list_with_a_bad_entry_is_nothing(frame: str) -> None:
    assert salvaged(frame.encode()) is None


def nested(levels: int) -> Any:
    value: Any = {"end": 1}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


@pytest.mark.parametrize("value", [nested(LEVELS_MOST), ["\U0001f600", 2**70, None, True, 1.5, "名前"], {}, "x", 7])
def test_what_every_parser_takes_is_left_as_it_is(value: Any) -> None:
    assert well_formed(value) is value


@pytest.mark.parametrize(
    "value", ["half \ud83d", {"\udc00": ["\ud800"]}, nested(LEVELS_MOST + 1), nested(900), [{"a": [nested(300)]}]]
)
def test_what_a_strict_parser_refuses_is_mended(value: Any) -> None:
    mended = well_formed(value)
    assert mended != value
    pydantic_core.from_json(dumps(mended))
    assert well_formed(mended) is mended
