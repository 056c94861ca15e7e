"""Random catalogs for the property tests."""

from __future__ import annotations

from hypothesis import strategies as st

# _LIKELY: a small alphabet makes clashes and shared prefixes likely. _ANY: any code point, including lone surrogates.
_LIKELY = st.text(alphabet="ab_-. x", max_size=6)
_ANY = st.text(alphabet=st.characters(), max_size=90)

servers = st.one_of(_LIKELY, _ANY, st.sampled_from(["github", "foo-mcp", "foo", "mcp", "my server", "my_20_server"]))
tools = st.one_of(_LIKELY, _ANY, st.sampled_from(["get", "foo_get", "mcp__foo_get", "a.b", "a_b", "a-b", "b" * 70]))
pairs = st.tuples(servers, tools)
catalogs = st.lists(pairs, max_size=25, unique=True)
modes = st.sampled_from(["server", "short", "none", "mcp"])

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _ANY,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_ANY, inner, max_size=4),
    max_leaves=12,
)
json_objects = st.dictionaries(_ANY, json_values, max_size=5)
