"""Which URI template a URI was made from."""

from __future__ import annotations

import pytest

from trayapp.catalog.templates import match_template


@pytest.mark.parametrize(
    ("template", "uri", "fits"),
    [
        ("file:///{path}", "file:///a", True),
        ("file:///{path}", "file:///a/b", False),
        ("file:///{+path}", "file:///a/b", True),
        ("file:///{path}", "file:///", True),  # an undefined variable leaves nothing
        ("u://{a}/{b}", "u://1/2", True),
        ("u://{a}/{b}", "u://1", False),
        ("u://{a}-{b}", "u://1-2-3", True),
        ("u://{a}.txt", "u://a.txt.txt", True),
        ("u://{a}.txt", "u://a.md", False),
        ("u://x{?q,n}", "u://x", True),
        ("u://x{?q,n}", "u://x?q=1&n=2", True),
        ("u://x{?q,n}", "u://xq=1", False),
        ("u://x?a=1{&q}", "u://x?a=1&q=2", True),
        ("u://x{/seg*}", "u://x/a/b", True),
        ("u://x{.ext}", "u://x.md", True),
        ("u://x{;p}", "u://x;p=1", True),
        ("u://x{#frag}", "u://x#top/1", True),
        ("u://x{#frag}", "u://xtop", False),
        ("u://x", "u://x", True),
        ("u://x", "u://xy", False),
        ("u://名/{a}", "u://名/前", True),
        ("u://{unclosed", "u://{unclosed", True),
    ],
)
def test_a_template_fits_what_it_may_expand_to(template: str, uri: str, fits: bool) -> None:
    assert match_template(uri, [template]) == ([template] if fits else [])


def test_of_several_the_most_literal_fits_best() -> None:
    assert match_template("u://a/b", ["u://{x}/{y}", "u://a/{y}", "u://{x}/b", "v://{x}"]) == ["u://a/{y}", "u://{x}/b"]


def test_no_template_is_slow() -> None:
    assert match_template("u://" + "-" * 8000, ["u://" + "{a}-" * 30 + "x"]) == []
    assert match_template("u://" + "-" * 9000, ["u://{a}"]) == []
    assert match_template("a" * 100, ["{a}" * 100]) == []
