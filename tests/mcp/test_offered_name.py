"""Tools get names that models take: each its own, and always the same."""

import re

from hypothesis import given
from hypothesis import strategies as st

from freehold.mcp.offered_name import fit_offered_name


@given(
    names=st.lists(st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=64), unique=True)
)
def test_no_two_tools_have_the_same_name(names: list[str]) -> None:
    """Also those whose real names look like one that was made fit."""
    every = {*names, *(fit_offered_name("odd", name).removeprefix("odd__") for name in names)}
    offered = [fit_offered_name("odd", name) for name in every]
    assert len(set(offered)) == len(every)
    assert all(re.fullmatch("[A-Za-z0-9_-]{1,48}", name) for name in offered)
    assert not {*offered} & {fit_offered_name("od", name) for name in every}
