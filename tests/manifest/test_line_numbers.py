"""Each key is found on its line."""

import tomllib

import tomlkit
from hypothesis import given, settings
from hypothesis import strategies as st

from freehold.manifest.line_numbers import find_key_line, find_key_lines
from freehold.manifest.problem import KeyPath

TEXT = '''\
# a comment with [brackets] = "and more"
top = 1
[gateway]   # door
port = 3000
"quoted key" = { inner = [1, 2], "x.y" . z = "}" }
a . b = """
[not.a.table]
port = 1 """""
c = \'\'\'
d = 2\'\'\'

[[mounts]]
source = "a"
[mounts.below]
x = 1
[[mounts]]
list = [
  1, # one ]
  [2, "]"],
]
last = 2020-01-01
'''


def test_lines_of_a_difficult_text() -> None:
    lines = find_key_lines(TEXT)
    expected: dict[KeyPath, int] = {
        ("top",): 2,
        ("gateway",): 3,
        ("gateway", "port"): 4,
        ("gateway", "quoted key"): 5,
        ("gateway", "quoted key", "inner", 1): 5,
        ("gateway", "quoted key", "x.y", "z"): 5,
        ("gateway", "a", "b"): 6,
        ("gateway", "c"): 9,
        ("mounts",): 12,
        ("mounts", 0): 12,
        ("mounts", 0, "source"): 13,
        ("mounts", 0, "below"): 14,
        ("mounts", 0, "below", "x"): 15,
        ("mounts", 1): 16,
        ("mounts", 1, "list"): 17,
        ("mounts", 1, "list", 0): 18,
        ("mounts", 1, "list", 1): 19,
        ("mounts", 1, "list", 1, 1): 19,
        ("mounts", 1, "last"): 21,
    }
    assert {path: lines.get(path) for path in expected} == expected


def test_a_key_that_is_not_written_has_the_line_of_its_table() -> None:
    lines = find_key_lines(TEXT)
    assert find_key_line(("gateway", "host"), lines) == 3
    assert find_key_line(("nowhere", "at", "all"), lines) is None


def paths_in(value: object, path: KeyPath = ()) -> set[KeyPath]:
    found: set[KeyPath] = {path} if path else set()
    if isinstance(value, dict):
        found |= {below for key, inner in value.items() for below in paths_in(inner, (*path, key))}
    elif isinstance(value, list):
        found |= {below for index, inner in enumerate(value) for below in paths_in(inner, (*path, index))}
    return found


SCALARS = st.one_of(st.integers(-9, 99), st.booleans(), st.text(max_size=8), st.dates(), st.floats(allow_nan=False))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)
TREES = st.dictionaries(st.text(max_size=6), VALUES, max_size=5)


@settings(deadline=None)
@given(TREES)
def test_exactly_the_keys_of_the_text_have_lines(tree: dict[str, object]) -> None:
    text = tomlkit.dumps(tree)
    lines = find_key_lines(text)
    assert set(lines) == paths_in(tomllib.loads(text))
    assert all(1 <= line <= text.count("\n") + 1 for line in lines.values())
