"""What an idle gateway gives back: in a process of its own, because it is its memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MIB = 1 << 20
BLOCKS = 24  # of one MiB, each with something small behind it that stays: the heap's end is not free
CHILD = f"""
import json
import anyio
from trayapp.gateway.process import memory

memory.SETTLED_S, memory.LOOK_S = 0.0, 0.05
found = []

async def grow_and_shrink(tasks):
    await anyio.sleep(0.3)
    found.append(memory.resident_bytes())
    blocks, kept = [], []
    for _ in range({BLOCKS}):
        blocks.append(b"x" * {MIB})
        kept.append(b"y" * 4096)
    found.append(memory.resident_bytes())
    blocks.clear()
    with anyio.move_on_after({{wait_s}}):
        while memory.resident_bytes() - found[0] > {BLOCKS * MIB // 2}:
            await anyio.sleep(0.05)
    found.append(memory.resident_bytes())
    tasks.cancel_scope.cancel()

async def main():
    async with anyio.create_task_group() as tasks:
        tasks.start_soon({{tend}})
        tasks.start_soon(grow_and_shrink, tasks)

anyio.run(main)
print(json.dumps(found))
"""


def megabytes(tend: str, wait_s: float) -> list[float]:
    """Resident before, with and at most so long after the blocks, where that coroutine tends the memory."""
    code = CHILD.replace("{tend}", tend).replace("{wait_s}", str(wait_s))
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [value / MIB for value in json.loads(done.stdout)]


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's")
def test_what_large_answers_have_left_is_given_back() -> None:
    before, with_them, after = megabytes("memory.tend_memory", 10)
    assert with_them - before > BLOCKS * 0.9
    assert after - before < BLOCKS / 2


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's")
def test_without_that_it_would_stay() -> None:
    before, _, after = megabytes("memory._settle", 0.5)
    assert after - before > BLOCKS / 2


def test_a_system_without_the_file_is_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from trayapp.gateway.process import memory

    monkeypatch.setattr(memory, "STATM", tmp_path / "none")
    assert memory.resident_bytes() == 0
