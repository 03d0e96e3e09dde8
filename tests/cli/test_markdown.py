"""Markdown in the terminal. The result does not depend on how the text is split into pieces."""

from hypothesis import given
from hypothesis import strategies as st

from freehold.cli._markdown import BOLD, CYAN, DIM, PLAIN, MarkdownStream


def shown(*pieces: str) -> str:
    markdown = MarkdownStream(colour=True)
    return "".join(markdown.feed(piece) for piece in pieces) + markdown.end()


def test_headings_bold_code_lists_and_fences_are_styled() -> None:
    assert shown("# Title\n") == f"{BOLD}Title{PLAIN}\n{PLAIN}"
    assert shown("a **b** `c` 2*3") == f"a {PLAIN}{BOLD}b{PLAIN} {CYAN}c{PLAIN} 2*3{PLAIN}"
    assert shown("- one\n  * two\n") == f"• one{PLAIN}\n  • two{PLAIN}\n{PLAIN}"
    fenced = shown("```py\n# x **y**\n```\n**z**")
    assert fenced == (f"{DIM}```py{PLAIN}\n{CYAN}# x **y**{PLAIN}\n{DIM}```{PLAIN}\n{PLAIN}{BOLD}z{PLAIN}{PLAIN}")


@given(st.text(alphabet="ab #*`-\n", max_size=60), st.integers(0, 60))
def test_where_the_text_is_split_changes_nothing(text: str, place: int) -> None:
    assert shown(text[:place], text[place:]) == shown(*text)


@given(st.text(alphabet="ab #*`-\n", max_size=60))
def test_without_color_the_text_is_unchanged(text: str) -> None:
    markdown = MarkdownStream(colour=False)
    assert markdown.feed(text) + markdown.end() == text
