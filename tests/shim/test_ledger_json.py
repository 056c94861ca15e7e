"""Tests of the shim's JSON reader and writer, which match the json module but import less."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import trayapp
from trayapp.shim.ledger import dumps, loads

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_it_reads_and_writes_as_the_json_module(value: Any) -> None:
    written = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
    assert dumps(value) == written
    assert loads(written) == loads(b" \r\n" + json.dumps(value, indent=1).encode() + b"\t\n") == value


JUNK = [
    b"",
    b" ",
    b"{",
    b"}",
    b'{"a":}',
    b"{} {}",
    b"[1,]",
    b'"\n"',
    b"nul",
    b"\xff",
    b"\xef\xbb\xbf{}",
    b'{"a"',
    b"01",
]
JUNK += [
    b'{"a":1',
    b'{"a":1,,}',
    b'"a',
    b'"\\x"',
    b'"\\u12"',
    b"[1 2]",
    b"{1:2}",
    b"[1",
    b'{"a" 1}',
    b"-",
    b"[nul]",
    b'{"a":"',
]


@pytest.mark.parametrize("junk", JUNK)
def test_what_is_no_json_raises_a_value_error(junk: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - several kinds of it
        loads(junk)


def test_so_it_does_in_a_shim_where_the_json_module_is_not_loaded() -> None:
    code = f"""
import sys
sys.path.append(sys.argv[1])
from trayapp.shim.ledger import parsed
print([junk for junk in {JUNK!r} if parsed(junk) is not None])
"""
    assert run_alone(code) == "[]\n"


def run_alone(code: str) -> str:
    """Run the code in an interpreter that has loaded as little as a shim's, and return its output."""
    root = str(Path(trayapp.__file__).parents[1])
    ran = subprocess.run([sys.executable, "-I", "-S", "-c", code, root], capture_output=True, text=True, check=True)
    return ran.stdout


def test_what_is_nested_too_deep_is_told_so() -> None:
    with pytest.raises(RecursionError):
        loads(b"[" * 100_000)


def test_what_json_does_not_know_is_not_written_and_leaves_no_trace() -> None:
    value: list[Any] = [{1, 2}]
    with pytest.raises(TypeError, match="set"):
        dumps(value)
    value[0] = 1
    assert dumps(value) == b"[1]"


def test_a_shim_with_its_ledger_has_loaded_neither_regular_expressions_nor_typing() -> None:
    """These modules would cost 1.6 MiB of memory in every shim."""
    code = """
import sys
sys.path.append(sys.argv[1])
import trayapp.shim.relay
from trayapp.shim.ledger import Ledger
ledger = Ledger()
ledger.record_client_lines(b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}\\n')
ledger.record_client_lines(b'{"method":"tools/call","params":{},"jsonrpc":"2.0","id":1}\\n')
ledger.record_gateway_lines(b'{"jsonrpc":"2.0","method":"notifications/x"}\\n{"jsonrpc":"2.0","id":0,"result":{}}\\n')
ledger.record_gateway_lines(b'{"jsonrpc":"2.0","id":"a","result":{}}\\n{"result":{},"jsonrpc":"2.0","id":1}\\n')
assert not ledger.open, ledger.open
print([name for name in ("re", "json", "typing", "enum", "contextlib", "ctypes", "asyncio") if name in sys.modules])
"""
    assert run_alone(code) == "[]\n"
