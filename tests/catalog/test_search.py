"""The results of searches and their order: single cases, and properties of any catalog."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Container
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.catalog import shelf
from tests.catalog.strategies import json_values
from trayapp.catalog.search.documents import keywords_of
from trayapp.catalog.search.index import (
    LIMIT,
    EmptyQueryError,
    Entry,
    Hit,
    InvalidPatternError,
    Pattern,
    SearchIndex,
    matching,
)
from trayapp.catalog.search.query import DELETE, READ, WRITE, UserSynonyms, action_of_tool, read_query, without_literals
from trayapp.catalog.search.vocabulary import ServerNames, Vocabulary
from trayapp.catalog.search.words import split, stem
from trayapp.model.errors import ExitCode

CATALOGUE = [
    ("github", "search_repositories", "Find repositories on GitHub using a topic, a name or free words"),
    ("github", "create_issue", "Open a new issue in one repository"),
    ("github", "list_issues", "Show the issues of a repository, newest first"),
    ("github", "create_pull_request", "Propose a branch for merging"),
    ("github", "get_file_contents", "Return what a file in a repository holds"),
    ("obsidian", "global_search", "Look through every note in the vault"),
    ("obsidian", "read_note", "Return the body of one note"),
    ("obsidian", "write_note", "Store text in a note, replacing what was there"),
    ("exa", "web_search_exa", "Look something up on the public web"),
    ("context7", "resolve-library-id", "Turn a package name into a Context7 library identifier"),
    ("context7", "get-library-docs", "Fetch up-to-date documentation for a library"),
    ("xcodebuild", "list_sims", "Lists available iOS simulators"),
    ("xcodebuild", "boot_sim", "Start one simulator and wait for it"),
    ("chrome-devtools", "take_screenshot", "Save a picture of the page that is open"),
    ("wx", "getForecast", "Weather for the coming days at a place"),
    ("fs", "read_file", "Return the text of a file on disk"),
    ("fs", "write_file", "Store text in a file on disk"),
    ("pg", "query", "Run one read-only SQL statement"),
]


def entry(server: str, name: str, description: Any = "", **more: Any) -> Entry:
    return Entry(server, name, f"{server}_{name}", {"name": name, "description": description, **more})


def index_of(*entries: Entry, synonyms: dict[str, list[str]] | None = None) -> SearchIndex:
    index = SearchIndex(synonyms)
    for server in dict.fromkeys(one.server for one in entries):
        index.update(server, [one for one in entries if one.server == server])
    return index


def catalogue(synonyms: dict[str, list[str]] | None = None) -> SearchIndex:
    return index_of(*(entry(*row) for row in CATALOGUE), synonyms=synonyms)


def found(index: SearchIndex, words: str, **options: Any) -> list[str]:
    return [hit.exposed_name for hit in index.search(words, **options)]


def fitting(index: SearchIndex, pattern: str, allowed: Container[tuple[str, str]] | None = None) -> list[Hit]:
    return matching(Pattern(pattern), index.listed(allowed=allowed), LIMIT)


FIRST = [
    ("search-07", "create issue github", "github_create_issue"),
    ("search-08", "screenshot", "chrome-devtools_take_screenshot"),
    ("search-09", "take screenshot", "chrome-devtools_take_screenshot"),
    ("search-10", "take a screenshot of the page", "chrome-devtools_take_screenshot"),
    ("search-11", "get forecast", "wx_getForecast"),
    ("search-12", "getforecast", "wx_getForecast"),
    ("search-14", "read note", "obsidian_read_note"),
    ("search-15", "note read", "obsidian_read_note"),
    ("search-16", "vault", "obsidian_global_search"),
    ("search-17", "resolve library id", "context7_resolve-library-id"),
    ("search-18", "resolve_library_id", "context7_resolve-library-id"),
    ("search-20", "documentation", "context7_get-library-docs"),
    ("search-22", "run sql query", "pg_query"),
    ("search-26", "READ_FILE", "fs_read_file"),
    ("search-30", "merge branch", "github_create_pull_request"),
    ("search-31", "list all the issues", "github_list_issues"),
    ("search-33", "web", "exa_web_search_exa"),
    ("search-35", "simulater", "xcodebuild_boot_sim"),
    ("search repositories", "search repositories", "github_search_repositories"),
    ("repository issues", "repository issues", "github_list_issues"),
    ("weather", "weather", "wx_getForecast"),
    ("library docs", "library docs", "context7_get-library-docs"),
    ("sql", "sql", "pg_query"),
    ("read file disk", "read file disk", "fs_read_file"),
    ("pull request", "pull request", "github_create_pull_request"),
    ("exa", "exa", "exa_web_search_exa"),
    ("the exposed name", "xcodebuild_boot_sim", "xcodebuild_boot_sim"),
    ("open issue", "open issue", "github_create_issue"),
    ("context7", "context7", "context7_resolve-library-id"),
    ("the very form", "simulators", "xcodebuild_list_sims"),
    ("a long question", "I have lost the phone with which I test, so please could you start one of those simulators "
     "for me and tell me, as soon as it is up, that I can go on with my work", "xcodebuild_boot_sim"),
    ("two typos", "creat isue", "github_create_issue"),
    ("one word for two", "pullrequest", "github_create_pull_request"),
]  # fmt: skip


@pytest.mark.requirement("search-cases")
@pytest.mark.parametrize(("words", "first"), [row[1:] for row in FIRST], ids=[row[0] for row in FIRST])
def test_the_tool_that_is_meant_comes_first(words: str, first: str) -> None:
    assert found(catalogue(), words)[0] == first


SETS = [
    ("search-01", "simulator", {"xcodebuild_boot_sim", "xcodebuild_list_sims"}),
    ("simulators", "simulators", {"xcodebuild_boot_sim", "xcodebuild_list_sims"}),
    ("search-06", "issue", {"github_create_issue", "github_list_issues"}),
    ("search-28", "context7", {"context7_resolve-library-id", "context7_get-library-docs"}),
    ("search-37", "zzz", set()),
    ("file", "file", {"fs_read_file", "fs_write_file", "github_get_file_contents"}),
    ("search-03", "search", {"github_search_repositories", "exa_web_search_exa", "obsidian_global_search"}),
    ("nothing but marks", "?!", set()),
]


@pytest.mark.requirement("search-cases")
@pytest.mark.parametrize(("words", "names"), [row[1:] for row in SETS], ids=[row[0] for row in SETS])
def test_one_word_finds_what_has_it_and_nothing_else(words: str, names: set[str]) -> None:
    assert set(found(catalogue(), words)) == names


@pytest.mark.requirement("search-cases")
def test_search_27_the_name_of_a_server_finds_its_tools() -> None:
    assert {hit.server for hit in catalogue().search("github")[:5]} == {"github"}


@pytest.mark.requirement("search-cases")
@pytest.mark.parametrize(
    ("words", "name"),
    [
        pytest.param("simulater", "xcodebuild_boot_sim", id="search-35"),
        pytest.param("serch", "github_search_repositories", id="search-36"),
        ("repositry", "github_search_repositories"),
        ("screenshto", "chrome-devtools_take_screenshot"),
        ("wheather", "wx_getForecast"),
        ("docu", "context7_get-library-docs"),
    ],
)
def test_typing_errors_are_forgiven(words: str, name: str) -> None:
    assert name in found(catalogue(), words)


@pytest.mark.requirement("search-cases")
@pytest.mark.parametrize("words", [pytest.param("", id="search-38"), pytest.param("   ", id="search-39"), "\n\t"])
def test_a_search_for_nothing_is_an_error(words: str) -> None:
    with pytest.raises(EmptyQueryError) as caught:
        catalogue().search(words)
    assert (caught.value.code, caught.value.exit_code) == ("empty_query", ExitCode.USAGE)


@pytest.mark.requirement("search-cases")
def test_search_40_no_words_but_a_server_lists_its_tools_by_name() -> None:
    names = ["create_issue", "create_pull_request", "get_file_contents", "list_issues", "search_repositories"]
    assert found(catalogue(), "", server="github") == [f"github_{name}" for name in names]
    assert found(catalogue(), "", server="github", limit=2) == ["github_create_issue", "github_create_pull_request"]


@pytest.mark.requirement("search-cases")
def test_search_42_tools_with_all_words_come_first_and_the_others_say_what_they_lack() -> None:
    index = index_of(entry("s", "search_missing", "Search what is missing"), entry("s", "search", "Search"))
    full, partial = index.search("search missing")
    assert (full.name, full.missed) == ("search_missing", ())
    assert (partial.name, partial.missed) == ("search", ("missing",))


@pytest.mark.requirement("search-cases")
def test_search_48_a_server_narrows_the_search() -> None:
    assert set(found(catalogue(), "file", server="fs")) == {"fs_read_file", "fs_write_file"}
    assert found(catalogue(), "anything", server="nope") == []  # no error, since clients know the servers


@pytest.mark.requirement("search-cases")
@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        pytest.param("^xcodebuild_(list|boot)", ["xcodebuild_boot_sim", "xcodebuild_list_sims"], id="search-43"),
        pytest.param("BOOT", ["xcodebuild_boot_sim"], id="search-44"),
        ("_file$", ["fs_read_file", "fs_write_file"]),
        ("^Weather", ["wx_getForecast"]),
        ("^(read|write)_note$", ["obsidian_read_note", "obsidian_write_note"]),
        ("nothing like it", []),
    ],
)
def test_a_pattern_finds_names_and_first_lines(pattern: str, names: list[str]) -> None:
    assert [hit.exposed_name for hit in fitting(catalogue(), pattern)] == names


@pytest.mark.requirement("search-cases")
def test_search_45_a_pattern_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(InvalidPatternError) as caught:
        Pattern("[")
    assert (caught.value.code, caught.value.exit_code) == ("invalid_pattern", ExitCode.USAGE)


@pytest.mark.requirement("search-cases")
def test_search_50_a_possessive_s_matches_nothing() -> None:
    index = index_of(entry("s", "sync_icon", "Add an icon to your project's icons file."))
    assert found(index, "simulator") == []


@pytest.mark.requirement("search-cases")
def test_search_51_an_abbreviation_is_found_by_the_long_word() -> None:
    assert found(index_of(entry("s", "sync_icon", "Sync an icon.")), "synchronize") == ["s_sync_icon"]


@pytest.mark.parametrize(
    ("synonyms", "words"),
    [
        pytest.param({"pg/query": ["database"]}, "database", id="search-24"),
        ({"query": ["database"]}, "database"),
        ({"database": ["query"]}, "database"),
        ({"sql": ["relational tables"]}, "relational tables"),
        ({"relational tables": ["sql"]}, "the tables that are relational"),
        ({"p?/*": ["ledger"]}, "ledger"),
        ({"pg/*": ["general ledger"]}, "general ledger"),
    ],
)
@pytest.mark.requirement("search-synonyms")
def test_a_user_s_synonyms_find_the_tool(synonyms: dict[str, list[str]], words: str) -> None:
    assert found(catalogue(synonyms), words)[0] == "pg_query"


@pytest.mark.requirement("search-synonyms")
def test_search_53_words_of_all_keys_that_fit_a_tool_count_each_once() -> None:
    synonyms = {"search_*": ["records", "fuzzy lookup"], "search_records_advanced": ["fuzzy lookup", "legacy"]}
    assert keywords_of("any", "search_records_advanced", synonyms) == ["records", "fuzzy lookup", "legacy"]


@pytest.mark.requirement("search-synonyms")
def test_search_54_changed_synonyms_count_at_once() -> None:
    tools = {"s": entry("s", "lookup_a"), "t": entry("t", "b")}
    index = index_of(*tools.values(), synonyms={"s/lookup_*": ["fuzzy"]})
    assert found(index, "fuzzy") == ["s_lookup_a"]
    for server in index.take_synonyms({"s/lookup_*": ["semantic"], "b": ["wooly"]}):
        index.update(server, [tools[server]])
    assert found(index, "fuzzy") == []
    assert found(index, "semantic") == ["s_lookup_a"]
    assert found(index, "wooly") == ["t_b"]


def test_only_what_is_allowed_is_found() -> None:
    index, allowed = catalogue(), {("fs", "write_file"), ("pg", "query")}
    assert found(index, "file", allowed=allowed) == ["fs_write_file"]
    assert [hit.exposed_name for hit in fitting(index, "file", allowed)] == ["fs_write_file"]
    assert found(index, "", server="fs", allowed=allowed) == ["fs_write_file"]
    assert found(index, "file", allowed=frozenset()) == []


def test_what_is_allowed_is_found_however_many_are_not() -> None:
    many = [entry("s", f"read_file_{number}", "Read a file") for number in range(400)]
    index = index_of(*many, entry("t", "other", "May read one file among other things that it does"))
    assert found(index, "read file", allowed={("t", "other")}) == ["t_other"]


CROWD = index_of(
    *(entry(f"s{n % 7}", f"{verb}_{noun}_{n}", f"{verb.title()} a {noun} of the {place}")
      for n, (verb, noun, place) in enumerate(
          (verb, noun, place)
          for verb in ("read", "write", "delete", "search", "list")
          for noun in ("file", "issue", "note", "page", "ticket", "message", "folder", "report")
          for place in ("project", "team", "house", "archive", "inbox", "report", "file", "garden", "search", "list")))
)  # fmt: skip


@pytest.mark.requirement("search-recall")
@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.sampled_from(
            ["read", "write", "find", "file", "document", "issue", "note", "delete", "report", "team", "the", "list"]
        ),
        min_size=1,
    ),
    st.integers(1, 500),
    st.integers(1, 500),
)
def test_fewer_hits_are_the_first_of_more(words: list[str], fewer: int, more: int) -> None:
    fewer, more = sorted((fewer, more))
    assert CROWD.search(" ".join(words), limit=fewer) == CROWD.search(" ".join(words), limit=more)[:fewer]


LITERALS = [
    "~/notes/delete.txt", "/var/issue/note", "src/issue/note.py", "note/issue/", r"C:\issue\note.md", "issue-note.xlsx",
    "https://github.com/issue?x=note", "www.issue.com", "issue.com/note,", "localhost:8080/issue", "note@issue.com",
    "'issue note'", '"list issues"', "`note issue --all`", "“issue”", "(note.pdf)",
]  # fmt: skip


@pytest.mark.requirement("search-literals")
@pytest.mark.parametrize("literal", LITERALS)
def test_what_a_tool_is_to_work_on_is_not_searched_for(literal: str) -> None:
    assert found(catalogue(), f"take a screenshot of {literal}") == found(catalogue(), "take a screenshot of")


@pytest.mark.requirement("search-literals")
@pytest.mark.parametrize(("words", "first"), [
    ('"create issue"', "github_create_issue"), ("`boot_sim`", "xcodebuild_boot_sim"),
    ("/vault", "obsidian_global_search"),
    ('the tool "create issue"', "github_create_issue"), ("https://github.com", "github_get_file_contents"),
])  # fmt: skip
def test_a_query_that_is_nothing_else_finds_something(words: str, first: str) -> None:
    assert first in found(catalogue(), words)


@pytest.mark.requirement("search-literals")
@pytest.mark.parametrize("words", [
    "read/write a note", "the vault's notes and users' notes", "what's in Node.js", "create_issue", "fs/read_file",
    "e.g. a note", "monday.com", "1.2.3", "*.csv", "don't delete 'em",
])  # fmt: skip
def test_words_with_marks_in_them_stay_words(words: str) -> None:
    assert without_literals(words) == words


KINDS = [
    ("summarize ~/notes/plan.txt", "b_summarize_file"), ("summarize src/app.js", "b_summarize_file"),
    ("summarize https://acme.com/plan.txt", "c_summarize_url"), ("summarize acme.com/plan", "c_summarize_url"),
    ("summarize localhost:8080", "c_summarize_url"), ("summarize", "a_summarize"),
    ("summarize `src/app.js`", "b_summarize_file"), ('summarize "https://acme.com"', "c_summarize_url"),
    ('summarize "the plan"', "a_summarize"), ("summarize ann@acme.com", "a_summarize"),
]  # fmt: skip


@pytest.mark.requirement("search-literal-kinds")
@pytest.mark.parametrize(("words", "first"), KINDS)
def test_a_literal_counts_as_what_it_is(words: str, first: str) -> None:
    index = index_of(*(entry(*row) for row in (
        ("a", "summarize", "Give the gist of text"), ("b", "summarize_file", "Give the gist of a file"),
        ("c", "summarize_url", "Give the gist of a URL"),
    )))  # fmt: skip
    hits = index.search(words)
    assert hits[0].exposed_name == first
    assert not any(hit.missed for hit in hits)  # the kind of a literal, such as `file`, does not count as missed


SITES = [
    ("https://acme.com/board/17", "acme"), ("https://www.acme.com", "acme"), ("bolt.acme.io:8443/board", "acme"),
    ("'https://bolt.com/acme'", "bolt"), ("ssh://git.bolt.dev", "bolt"),
    ("https://corp.com/acme", ""), ("/srv/acme.com/board", ""), ("ann@acme.com", ""), ("https://acme", ""),
]  # fmt: skip


@pytest.mark.requirement("search-literal-kinds")
@pytest.mark.parametrize(("literal", "server"), SITES)
def test_a_url_names_the_server_that_is_called_as_its_site(literal: str, server: str) -> None:
    texts = {"acme": "Read a card", "bolt": "Read a card", "cards": "Read a card, card by card"}
    index = index_of(*(entry(name, f"{name}_read_card", text) for name, text in texts.items()))
    plain, asked = index.search("read the card"), index.search(f"read the card {literal}")
    before, now = ([hit.server for hit in hits] for hits in (plain, asked))
    assert now == ([server, *(name for name in before if name != server)] if server else before)
    assert not any(hit.missed for hit in asked)


PATHS = {"type": "object", "properties": {"path": {"type": "string"}}}
WORDS = {"type": "object", "properties": {"query": {"type": "string"}}}


@pytest.mark.requirement("search-one-hit")
@pytest.mark.parametrize("more", [
    entry("b", "read_file", "Read the text of a file"),
    entry("b", "read_file", "Read the text of a file below /srv", inputSchema=PATHS),
])  # fmt: skip
@pytest.mark.parametrize("regex", [False, True])
def test_the_same_tool_on_several_servers_is_one_hit(more: Entry, regex: bool) -> None:
    others = [entry("c", "write_file", "Write a file"), entry("d", "read_files", "Read the text of a file")]
    index = index_of(entry("a", "read_file", "Read the text of a file", inputSchema=PATHS), more, *others)
    hits = fitting(index, "read.file") if regex else index.search("read the text of a file")
    (hit,) = [hit for hit in hits if hit.name == "read_file"]
    assert {hit.key, *hit.also} == {("a", "read_file"), ("b", "read_file")}
    assert all(other.also == () for other in hits if other != hit)
    assert found(index, "read the text of a file", server="b") == ["b_read_file"]


@pytest.mark.requirement("search-one-hit")
def test_the_server_that_is_named_stands_for_the_others() -> None:
    index = index_of(*(entry(server, "read_file", "Read a file") for server in ("prod", "stage", "local")))
    (hit,) = index.search("read a file on stage")
    assert (hit.exposed_name, hit.also) == ("stage_read_file", (("local", "read_file"), ("prod", "read_file")))


@pytest.mark.requirement("search-one-hit")
@pytest.mark.parametrize(("one", "two"), [
    ({"description": "Search the pages of a wiki", "inputSchema": WORDS},
     {"description": "Search messages by their words", "inputSchema": WORDS}),
    ({"description": "", "inputSchema": {"type": "object"}}, {"description": "", "inputSchema": {"type": "object"}}),
    ({}, {}),
    ({"description": "Search", "inputSchema": WORDS}, {"description": "Find", "inputSchema": PATHS}),
])  # fmt: skip
def test_what_only_has_the_same_name_stays_two_hits(one: dict[str, Any], two: dict[str, Any]) -> None:
    index = index_of(entry("a", "search", **one), entry("b", "search", **two))
    assert set(found(index, "search")) == {"a_search", "b_search"}


CLOUD = [
    entry("north", "list_instances", "List the instances of a tenant"),
    entry("north", "create_instance", "Create an instance for a tenant"),
    entry("north", "remove_instance", "Remove an instance of a tenant"),
]


@pytest.mark.requirement("search-actions")
@pytest.mark.parametrize(("words", "first"), [
    ("which instances does the tenant have", "list_instances"), ("how many instances are there", "list_instances"),
    ("set up an instance", "create_instance"), ("please start an instance for me", "create_instance"),
    ("this tenant is new, I want to destroy his instance", "remove_instance"),
])  # fmt: skip
def test_what_reads_writes_or_deletes_as_it_is_asked_comes_first(words: str, first: str) -> None:
    assert found(index_of(*CLOUD), words)[0] == f"north_{first}"


@pytest.mark.requirement("search-actions")
@pytest.mark.parametrize(("words", "action"), [
    ("what is new", READ), ("Is it open", READ), ("show it", READ), ("please create it", WRITE), ("Forget it", DELETE),
    ("for later: move it", WRITE), ("I want to cancel it", DELETE), ("a new page", ""), ("drawing", ""), ("", ""),
    ("the report that was deleted", ""), ("check it and remove it", DELETE), ("find it and remove it", READ),
])  # fmt: skip
def test_a_query_s_action_is_that_of_its_question_or_first_verb(words: str, action: str) -> None:
    assert read_query(words, Vocabulary(), UserSynonyms({})).action == action


@pytest.mark.requirement("search-actions")
@pytest.mark.parametrize(("name", "head", "action"), [
    ("get-page", "", READ), ("page_delete", "List", DELETE), ("pages", "Creates a page", WRITE),
    ("pages", "Those that were created", ""), ("", "", ""),
])  # fmt: skip
def test_a_tool_s_action_is_that_of_its_name_or_the_first_word_about_it(name: str, head: str, action: str) -> None:
    assert action_of_tool([stem(word) for word in split(name)], [stem(word) for word in split(head)]) == action


@pytest.mark.requirement("search-servers")
def test_the_tools_of_the_server_that_is_named_come_first() -> None:
    index = index_of(
        entry("post", "send_message", "Send a welcome message to a user"),
        entry("acme", "notify", "Send a message"),
        entry("acme-eu", "notify_all", "Send a message"),
        entry("phone", "call", "Call a user"),
    )
    assert found(index, "send a message to the user")[0] == "post_send_message"
    assert found(index, "send a message to the acme user")[0] == "acme_notify"
    index.remove("acme")
    assert found(index, "send a message to the acme user")[0] == "acme-eu_notify_all"


@pytest.mark.requirement("search-servers")
def test_a_word_that_other_servers_tools_have_says_less_about_the_server_named_after_it() -> None:
    names = ServerNames()
    names.add("pages", ["page"])
    names.add("acme", ["acm"])
    names.add("more", ["more"])
    shares = names.shares(["acm", "page", "none"], {"acm": 1, "page": 3}.__getitem__)
    assert shares.keys() == {"acm", "page"}
    assert shares["acm"] == 1.0
    assert 0 < shares["page"] < 0.2


@pytest.mark.requirement("search-incremental")
def test_one_server_s_change_leaves_the_others_alone() -> None:
    index = catalogue()
    index.update("fs", [entry("fs", "shred", "Destroy a repository")])
    assert "fs_shred" in found(index, "repository")
    assert "fs_read_file" not in found(index, "file")
    index.remove("github")
    index.remove("never known")
    assert found(index, "repository") == ["fs_shred"]
    index.update("fs", [])
    assert found(index, "repository") == []
    index.update("fs", [entry("fs", "read_file")])
    assert found(index, "file") == ["fs_read_file"]


@pytest.mark.requirement("search-incremental")
def test_an_index_that_was_changed_answers_like_a_new_one() -> None:
    shelves, changed, fresh = shelf.entries(), SearchIndex(), SearchIndex()
    for server, entries in reversed(shelves.items()):
        changed.update(server, entries[:3])
    changed.remove("stripe")
    for server, entries in shelves.items():
        changed.update(server, entries)
        fresh.update(server, entries)
    for question, _ in shelf.QUESTIONS:
        assert changed.search(question) == fresh.search(question)


def test_every_field_is_searched() -> None:
    deep = {"type": "array", "items": {"properties": {"leaf": {}}}}
    zone = {"type": "string", "description": "Where the orchard lies"}
    schema = {"type": "object", "properties": {"zone": zone, "mode": {"enum": ["graft", 3]}, "deep": deep}}
    tool = entry("farm", "count", "Number of trees.\nLater lines mention cider", title="Arborist", inputSchema=schema,
                 annotations={"title": "Pomology", "readOnlyHint": True, "destructiveHint": False})  # fmt: skip
    index = index_of(tool, entry("other", "thing", "Something else"))
    for word in ("count", "arborist", "pomology", "farm", "trees", "cider", "zone", "orchard", "graft", "leaf", "read"):
        assert found(index, word) == ["farm_count"], word


def test_sqlite_is_imported_with_the_first_tool() -> None:
    """The import takes start-up time, and many sessions never search."""
    code = """
import sys
from trayapp.catalog.search.index import Entry, SearchIndex
index = SearchIndex({"a": ["b"]})
index.update("s", [])
index.remove("s")
assert index.search("a") == [] and "sqlite3" not in sys.modules
index.update("s", [Entry("s", "a", "s_a", {"name": "a"})])
assert index.search("a") and "sqlite3" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)


@pytest.mark.requirement("search-recall")
def test_the_shelf_s_questions_are_answered() -> None:
    index = SearchIndex()
    for server, entries in shelf.entries().items():
        index.update(server, entries)
    met = [{hit.name for hit in index.search(words, limit=5)} & {*tools} for words, tools in shelf.QUESTIONS]
    assert sum(map(bool, met)) / len(met) >= 0.85  # some questions share no word with their answers


odd_tools = st.fixed_dictionaries(
    {},
    optional={
        "name": st.text(max_size=20) | json_values,
        "title": json_values,
        "description": st.text(max_size=80) | json_values,
        "inputSchema": json_values
        | st.fixed_dictionaries({"properties": json_values | st.dictionaries(st.text(max_size=5), json_values)}),
        "annotations": json_values,
    },
)


@settings(deadline=None)
@given(st.lists(odd_tools, max_size=4), st.text(max_size=60), st.text(max_size=8))
def test_whatever_servers_send_and_people_ask_is_taken(tools: list[dict[str, Any]], words: str, server: str) -> None:
    entries = [Entry(server, f"t{place}", f"x{place}", tool) for place, tool in enumerate(tools)]
    index = SearchIndex()
    index.update(server, entries)
    if words.strip():
        hits = index.search(words)
        assert {hit.key for hit in hits} <= {one.key for one in entries}
        assert hits == index.search(words)
    index.remove(server)
    assert index.search("anything") == []


@pytest.mark.requirement("search-servers")
def test_a_tool_named_after_a_common_word_is_found_beside_a_rare_one() -> None:
    index = index_of(
        *(entry("log", f"show_{at}", "Show what came at that time") for at in range(200)),
        *(entry("maps", f"view_{at}", "Show a map, such as one of Tokyo") for at in range(3)),
        entry("zones", "get_current_time", "Tell how late it is"),
    )
    assert "get_current_time" in [hit.name for hit in index.search("what time is it in Tokyo now")]


def test_the_tools_of_a_large_server_are_found_by_its_name_beside_a_rare_word() -> None:
    """The words `okta`, `create` and `group` occur in many tools, and `make` in few."""
    large = [entry("okta", f"{verb}_{what}{at}") for verb in ("create", "list") for what in "ab" for at in range(40)]
    groups = [entry("other", f"create_group_of_{at}") for at in range(80)]
    rare = [entry("other", f"make_{what}") for what in ("cake", "bread", "toys")]
    index = index_of(*large, entry("okta", "create_group"), *groups, *rare)
    assert index.search("make a group in okta", limit=1)[0].key == ("okta", "create_group")
