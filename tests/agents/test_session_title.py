"""A title that a model wrote is one short line, or none."""

import pytest

from freehold.agents.sessions.session_title import MAX_ASKED, ask_for_title, is_begin, read_title


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        ("Dark page", "Dark page"),
        ('"Dark page."\n', "Dark page"),
        ("**Dark page**\n\nIs there anything else?", "Dark page"),
        ("<think>The owner wants\na title</think>\n\nDark page", "Dark page"),
        ("<think>I was cut off while I", None),
        ("Seite: Dunkel", "Seite: Dunkel"),
        ("", None),
        (" \n\"'\n", None),
        ("word " * 40, None),
        ("a\u202eb", "a⟨U+202E⟩b"),
    ],
)
def test_an_answer_becomes_a_title_or_nothing(answer: str, title: str | None) -> None:
    assert read_title(answer) == title


@pytest.mark.parametrize(
    ("title", "is_it"),
    [
        ("Make it", True),
        ("Make  it dark…", True),
        ("…", False),
        ("", False),
        ("Dark page", False),
        ("Make it dar", True),
    ],
)
def test_a_title_that_is_the_begin_of_the_prompt_is_nobodys_choice(title: str, is_it: bool) -> None:
    assert is_begin(title, "\n Make it\ndark, please") is is_it


def test_the_model_is_shown_only_the_begin_of_a_long_prompt() -> None:
    assert len(ask_for_title("x" * 1_000_000)) < MAX_ASKED + 500
