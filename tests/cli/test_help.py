"""`freehold --help` lists every command once, under a heading, with a sentence that is not cut."""

import click
import pytest
from click.testing import CliRunner

from freehold.cli._topics import TOPICS
from freehold.cli.main import MAX_HELP, freehold_command
from freehold.features import list_features


def list_names() -> list[str]:
    return freehold_command.list_commands(click.Context(freehold_command))


def test_every_command_has_one_heading() -> None:
    listed = [name for names in TOPICS.values() for name in names]
    listed += [name for feature in list_features() for name in feature.commands]
    assert sorted(listed) == list_names()


@pytest.mark.parametrize("name", list_names())
def test_the_first_sentence_of_a_command_fits_beside_its_name(name: str) -> None:
    command = freehold_command.get_command(click.Context(freehold_command), name)
    assert command is not None
    shown = command.get_short_help_str(1000)
    assert shown.endswith(".")
    assert len(shown) <= MAX_HELP


@pytest.mark.parametrize("width", [80, 120])
def test_the_help_shows_headings_and_whole_sentences(width: int) -> None:
    text = CliRunner().invoke(freehold_command, ["--help"], terminal_width=width).output
    for topic in TOPICS:
        assert f"\n{topic}:\n" in text
    assert "..." not in text.replace("[ARGS]...", "")
    assert "undo     Undo the last change to your files.\n" in text


@pytest.mark.parametrize(
    ("typed", "suggested"),
    [("udno", "undo, run or runs"), ("stats", "status"), ("agent", "agents"), ("xyzzy", None)],
)
def test_an_unknown_command_names_the_nearest(typed: str, suggested: str | None) -> None:
    result = CliRunner().invoke(freehold_command, [typed])
    assert result.exit_code == 2
    assert f"There is no command '{typed}'." in result.output
    if suggested is None:
        assert "Did you mean" not in result.output
    else:
        assert suggested in result.output
