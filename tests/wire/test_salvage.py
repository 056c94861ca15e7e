"""One entry of a list that nobody can read costs only itself. Never here: which lists."""

from __future__ import annotations

import json

import pytest

from trayapp.wire.salvage import salvaged

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
