"""Requests that the panel must refuse, over plain HTTP."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

from tests.fixtures.odd import Odd
from tests.panel.scene import scene
from tests.tools import NO_CERTIFICATES

pytestmark = pytest.mark.anyio
PAGES = (
    "",
    "tools",
    "activity",
    "clients/found",
    "health/found",
    "tokens/found",
    "approvals",
    "clients",
    "setup",
    "setup/found",
    "help/verbs",
    "tokens",
    "health",
    "server/odd",
    "log/odd",
    "events",
    "nothing",
)


@pytest.mark.requirement("panel-sign-in")
async def test_without_the_cookie_there_is_nothing_but_the_sign_in_page(home: Path) -> None:
    async with (
        scene(home, Odd(home, "odd")) as made,
        httpx2.AsyncClient(verify=NO_CERTIFICATES, base_url=made.root) as http,
    ):
        for path in PAGES:
            came = await http.get(f"/panel/{path}")
            assert (came.status_code, "multi-mcp panel" in came.text, "odd" in came.text) == (401, True, False), path
            wrong = await http.get(f"/panel/{path}", headers={"Cookie": "multi_mcp_panel=x; a=b"})
            assert wrong.status_code == 401
        assert (await http.post("/panel/do/switch", data={"server": "odd", "on": "no"})).status_code == 401
        link = await made.link()
        assert (await http.head(link)).status_code == 401  # a HEAD request does not use up the link
        first = await http.get(link)
        assert (first.status_code, "<h1>Overview</h1>" in first.text, first.headers["cache-control"]) == (
            200,
            True,
            "no-store",
        )
        cookie = first.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert (await http.get(link)).status_code == 401
        assert (await http.get("/mcp_servers", headers={"Cookie": cookie.partition(";")[0]})).status_code == 401


@pytest.mark.requirement("panel-changes-guarded")
async def test_a_change_wants_our_origin_and_the_token(home: Path) -> None:
    async with (
        scene(home, Odd(home, "odd")) as made,
        httpx2.AsyncClient(verify=NO_CERTIFICATES, base_url=made.root) as http,
    ):
        cookie, token = await made.signed_in()
        good = {"Cookie": cookie, "Origin": made.root, "X-Panel-Token": token}
        form = {"server": "odd", "on": "no"}
        before = made.gateway.file.read_text()
        wrong = [
            {**good, "X-Panel-Token": ""},
            {**good, "X-Panel-Token": token[:-1] + "x"},
            {name: value for name, value in good.items() if name != "X-Panel-Token"},
            {name: value for name, value in good.items() if name != "Origin"},
            {**good, "Origin": "http://evil.test"},
            {**good, "Origin": "null"},
            {**good, "Origin": made.root.replace("127.0.0.1", "localhost")},
            {**good, "Origin": made.root + "1"},
            {**good, "Host": "evil.test"},
            {**good, "Sec-Fetch-Site": "cross-site"},
        ]
        for headers in wrong:
            came = await http.post("/panel/do/switch", data=form, headers=headers)
            assert came.status_code == 403, headers
        for method in ("GET", "PUT", "DELETE"):
            override = {**good, "X-HTTP-Method-Override": "POST"}
            came = await http.request(method, "/panel/do/switch?server=odd&on=no&_method=POST", headers=override)
            assert came.status_code in (404, 405)
        assert made.gateway.file.read_text() == before
        came = await http.post("/panel/do/switch", data=form, headers=good)
        assert came.status_code == 200
        assert made.gateway.server("odd")["state"] == "disabled"
        too_large = await http.post("/panel/do/switch", data={"x": "y" * 2_000_000}, headers=good)
        assert too_large.status_code == 413


@pytest.mark.requirement("panel-guarded")
async def test_every_answer_forbids_frames_scripts_and_other_addresses(home: Path) -> None:
    async with (
        scene(home, Odd(home, "odd")) as made,
        httpx2.AsyncClient(verify=NO_CERTIFICATES, base_url=made.root) as http,
    ):
        cookie, _ = await made.signed_in()
        for path in ("", "activity", "nothing", "static/htmx.min.js", "server/nobody", "activity/99999"):
            came = await http.get(f"/panel/{path}", headers={"Cookie": cookie})
            policy = came.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            assert came.headers["x-frame-options"] == "DENY"
        for path in ("static/../app.py", "static/%2e%2e/app.py", "static/", "static/nothing.js", "static/VENDORED.md"):
            assert (await http.get(f"/panel/{path}", headers={"Cookie": cookie})).status_code in (404, 401)
        rebound = await http.get("/panel/", headers={"Cookie": cookie, "Host": "evil.test"})
        assert rebound.status_code == 403
