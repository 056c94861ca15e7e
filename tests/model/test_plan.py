"""The plan that leads from the running configuration to the saved one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trayapp.model.config import Config, Plan, ServerConfig, Settings, ToolSwitch, plan
from trayapp.model.errors import Problem

A, B, C = (ServerConfig(name, command=name) for name in "abc")


def config(*servers: ServerConfig, settings: Settings | None = None) -> Config:
    return Config(settings or Settings(), {server.name: server for server in servers})


ROWS = [
    ("nothing", config(A, B), config(A, B), Plan()),
    ("another order", config(A, B), config(B, A), Plan()),
    ("moved lines", config(A), config(replace(A, line=9)), Plan()),
    ("added", config(A), config(A, B, C), Plan(added=("b", "c"))),
    ("removed", config(A, B, C), config(B), Plan(removed=("a", "c"))),
    ("launch settings", config(A, B), config(replace(A, args=("x",)), B), Plan(relaunched=("a",))),
    ("launch and others", config(A), config(replace(A, cwd="/", title="t")), Plan(relaunched=("a",))),
    ("tools", config(A), config(replace(A, tools={"t": ToolSwitch(False)})), Plan(adjusted=("a",))),
    ("switched off", config(A), config(replace(A, disabled=True)), Plan(adjusted=("a",))),
    ("settings", config(A), config(A, settings=Settings(linger=1)), Plan(settings_changed=True)),
    ("renamed", config(A), config(replace(A, name="z")), Plan(added=("z",), removed=("a",))),
    ("everything", config(), config(C, settings=Settings(expose="tools")), Plan(added=("c",), settings_changed=True)),
]


@pytest.mark.requirement("file-unchanged-run-on")
@pytest.mark.parametrize(("old", "new", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_change_becomes_a_plan(old: Config, new: Config, expected: Plan) -> None:
    assert plan(old, new) == expected


def test_problems_are_no_change() -> None:
    assert plan(config(A), replace(config(A), problems=(Problem("f", 1, "x"),))) == Plan()


servers = st.builds(
    ServerConfig,
    name=st.sampled_from("abc"),
    command=st.sampled_from(["x", "y"]),
    title=st.sampled_from([None, "t"]),
    line=st.integers(0, 3),
)
configs = st.lists(servers, unique_by=lambda server: server.name).map(lambda found: config(*found))


@given(configs, configs)
def test_each_name_is_in_one_field_and_the_way_back_mirrors_it(old: Config, new: Config) -> None:
    there, back = plan(old, new), plan(new, old)
    named = [*there.added, *there.removed, *there.relaunched, *there.adjusted]
    assert len(named) == len(set(named))
    assert set(named) <= set(old.servers) | set(new.servers)
    assert (set(there.added), set(there.removed)) == (set(back.removed), set(back.added))
    assert set(there.relaunched) == set(back.relaunched)
    assert plan(new, new) == Plan()
