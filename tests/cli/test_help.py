"""`freehold --help` lists every command once, under a heading, with a sentence that is not cut. So does each group."""

from collections.abc import Iterator

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


def list_groups(group: click.Group, *words: str) -> Iterator[tuple[str, ...]]:
    """The words of every command that has commands of its own."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            if any(not each.hidden for each in command.commands.values()):
                yield (*words, name)
            yield from list_groups(command, *words, name)


@pytest.mark.parametrize("words", [(), *list_groups(freehold_command)], ids=lambda words: " ".join(words) or "freehold")
def test_each_command_has_one_line_that_is_not_cut(words: tuple[str, ...]) -> None:
    text = CliRunner().invoke(freehold_command, [*words, "--help"], terminal_width=80).output
    listed = text.rpartition("Show this message and exit.\n")[2].splitlines()
    rows = [line for line in listed if line.startswith("  ")]
    assert rows
    assert [line for line in rows if line.startswith("   ") or line.endswith("...")] == []


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


@pytest.mark.parametrize("words", [*list_groups(freehold_command)], ids=" ".join)
def test_an_unknown_command_of_a_group_names_the_nearest(words: tuple[str, ...]) -> None:
    """Its first command without the last letter, which is always near."""
    group: click.Command | None = freehold_command
    for word in words:
        assert isinstance(group, click.Group)
        group = group.get_command(click.Context(group), word)
    assert isinstance(group, click.Group)
    wanted = next(name for name, each in group.commands.items() if not each.hidden)
    result = CliRunner().invoke(freehold_command, [*words, wanted[:-1]], prog_name="freehold")
    path = " ".join(("freehold", *words))
    assert result.exit_code == 2
    assert f"There is no command '{wanted[:-1]}' in {path}. Did you mean " in result.output
    assert wanted in result.output.partition("Did you mean")[2].partition("?")[0].replace(",", "").split()
    assert f"To list the commands: {path} --help" in result.output


def test_no_hidden_command_is_suggested() -> None:
    result = CliRunner().invoke(freehold_command, ["sessions", "lis"])
    assert result.exit_code == 2
    assert "There is no command 'lis'" in result.output
    assert "Did you mean" not in result.output
