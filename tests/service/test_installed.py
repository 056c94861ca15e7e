"""Tests of detecting processes that started before the program was replaced."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from trayapp.service.version import SETTLED_S, Update, installed_at, is_followed
from trayapp.wire.endpoint import write_endpoint
from trayapp.wire.greeting import Endpoint

pytestmark = pytest.mark.requirement("package-upgrade")
DAY_S = 86400.0


def test_a_process_that_started_after_its_program_came_is_no_old_one(tmp_path: Path) -> None:
    assert 0 < installed_at() < time.time()
    assert not Update(str(tmp_path)).replaced_this_process()


def test_a_program_that_is_yet_to_come_replaces_nothing(tmp_path: Path) -> None:
    """A program dated in the future, as after the clock was set back, must not make every gateway seem outdated."""
    now = installed_at() - DAY_S
    write_endpoint(str(tmp_path), Endpoint(os.getpid(), "0", "", started_at=now))
    update = Update(str(tmp_path), lambda: now)
    assert not update.replaced_this_process()
    assert not update.replaced_gateway(os.getpid())


@pytest.mark.parametrize(
    ("started", "replaced"),
    [
        pytest.param(-DAY_S, True, id="before"),
        pytest.param(DAY_S, False, id="after"),
        pytest.param(None, False, id="nobody knows"),
    ],
)
def test_a_gateway_from_before_is_told_once(tmp_path: Path, started: float | None, replaced: bool) -> None:
    since = 0.0 if started is None else installed_at() + started
    write_endpoint(str(tmp_path), Endpoint(os.getpid(), "0", "", started_at=since))
    update = Update(str(tmp_path))
    assert update.replaced_gateway(os.getpid()) is replaced
    assert not update.replaced_gateway(os.getpid())


def test_nothing_is_said_of_a_gateway_without_an_endpoint_or_with_anothers(tmp_path: Path) -> None:
    assert not Update(str(tmp_path)).replaced_gateway(7)
    write_endpoint(str(tmp_path), Endpoint(os.getpid(), "0", "", started_at=1.0))
    assert not Update(str(tmp_path)).replaced_gateway(os.getpid() + 1)


def test_a_program_is_followed_once_the_installer_is_done() -> None:
    came = installed_at()
    assert is_followed(came - DAY_S, lambda: came + SETTLED_S)
    assert not is_followed(came - DAY_S, lambda: came + SETTLED_S - 1)  # the installer may still be writing
    assert not is_followed(came + 1, lambda: came + DAY_S)
    assert not is_followed(came - DAY_S, lambda: came - 1)  # the clock was set back
