"""Codes, cookies and tokens of the panel."""

from __future__ import annotations

from pathlib import Path

import pytest

from trayapp.panel.host import CODE_S, CODES_MOST, PanelAccess


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.requirement("panel-sign-in")
def test_a_code_works_once_and_for_a_minute(tmp_path: Path) -> None:
    clock = Clock()
    access = PanelAccess(tmp_path / "cookies", clock)
    code = access.code()
    cookie = access.redeem(code)
    assert cookie is not None
    assert access.knows(cookie)
    assert access.redeem(code) is None
    late = access.code()
    clock.now += CODE_S
    assert access.redeem(late) is None
    assert access.redeem("") is None
    assert access.redeem("é\ud800") is None


@pytest.mark.requirement("panel-sign-in")
def test_many_codes_do_not_pile_up(tmp_path: Path) -> None:
    access = PanelAccess(tmp_path / "cookies")
    codes = [access.code() for _ in range(CODES_MOST + 1)]
    assert access.redeem(codes[0]) is None
    assert access.redeem(codes[-1]) is not None


@pytest.mark.requirement("panel-sign-in")
def test_a_cookie_outlives_a_killed_gateway_and_ends_with_one_that_ends(tmp_path: Path) -> None:
    file = tmp_path / "state" / "cookies"
    access = PanelAccess(file)
    cookie = access.redeem(access.code())
    assert cookie is not None
    assert cookie not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    again = PanelAccess(file)
    assert again.knows(cookie)
    again.end()
    assert not again.knows(cookie)
    assert not PanelAccess(file).knows(cookie)


@pytest.mark.requirement("panel-sign-in")
def test_a_code_that_was_not_used_ends_with_the_gateway(tmp_path: Path) -> None:
    file = tmp_path / "cookies"
    access = PanelAccess(file)
    code = access.code()
    access.end()
    assert access.redeem(code) is None
    assert not file.exists()


@pytest.mark.requirement("panel-changes-guarded")
def test_each_cookie_has_a_token_of_its_own(tmp_path: Path) -> None:
    access = PanelAccess(tmp_path / "cookies")
    one, two = access.redeem(access.code()), access.redeem(access.code())
    assert one is not None
    assert two is not None
    assert access.is_token(one, access.token(one))
    assert not access.is_token(one, access.token(two))
    assert not access.is_token(one, "")
