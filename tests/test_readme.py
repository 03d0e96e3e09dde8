"""What the README and the guides tell a newcomer to type is what works: run where it can be, parsed everywhere else."""

import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from tests.keeper.running import PATIENCE, ROOT, Stead

from freehold.cli.main import freehold_command

# Shows the command that agents have inside the computer, which has the same name.
INSIDE = ROOT / "docs" / "guides" / "host-tools.md"
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(page for page in sorted((ROOT / "docs").glob("guides/*.md")) if page != INSIDE),
]
BLOCK = re.compile(r"^```(?:sh|bash|console|shell)\n(.*?)^```", re.MULTILINE | re.DOTALL)
# As a shell reads it: what comes after belongs to another command.
ENDS = {"|", "||", "&&", ";", "&", ">", ">>", "<", "2>"}


def commands_in(page: Path) -> list[list[str]]:
    found = []
    for block in BLOCK.findall(page.read_text()):
        for line in block.replace("\\\n", " ").splitlines():
            lexer = shlex.shlex(line.strip().removeprefix("$ "), posix=True, punctuation_chars="|&;<>")
            lexer.whitespace_split = True
            words: list[str] = []
            for word in lexer:
                if word in ENDS:
                    break
                words.append("1" if word.startswith("$") else word)  # a variable of the reader's
            while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
                words.pop(0)
            if words:
                found.append(words)
    return found


def freehold_commands(page: Path) -> list[list[str]]:
    return [words[1:] for words in commands_in(page) if Path(words[0]).name == "freehold"]


@pytest.fixture(scope="module")
def stead(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stead]:
    stead = Stead(tmp_path_factory.mktemp("readme"))
    with stead.keeper() as keeper:
        keeper.next("ready")
        (stead.home.workspace / "notes.md").write_text("first")
        yield stead
        keeper.process.send_signal(signal.SIGTERM)
        keeper.process.wait(timeout=PATIENCE)


@pytest.mark.parametrize("words", freehold_commands(ROOT / "README.md"), ids=" ".join)
def test_a_command_of_the_readme_does_what_it_says(words: list[str], stead: Stead) -> None:
    if words[0] == "doctor":
        words = [*words, "--quick"]  # the bombs have tests of their own
    if "--follow" in words or "-f" in words:
        argv = [sys.executable, "-m", "freehold.cli.main", *words]
        with subprocess.Popen(argv, env=stead.environment, stdout=subprocess.PIPE, text=True) as following:
            assert following.stdout is not None
            assert following.stdout.readline()
            following.terminate()
        return
    done = stead.run(*words)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_the_readme_names_commands_at_all() -> None:
    assert len(freehold_commands(ROOT / "README.md")) >= 5
    assert ["make", "up"] in commands_in(ROOT / "README.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_on_a_page_is_spelled_as_the_command_line_takes_it(page: Path) -> None:
    for words in freehold_commands(page):
        command: click.Command = freehold_command
        context = click.Context(freehold_command, info_name="freehold")
        while isinstance(command, click.Group) and words and not words[0].startswith("-"):
            found = command.get_command(context, words[0])
            assert found is not None, f"{page.name}: there is no freehold {' '.join(words)}"
            command, words = found, words[1:]
            context = click.Context(command, parent=context, info_name=command.name)
        if any(word in ("-h", "--help", "--version") or "…" in word for word in words):
            continue
        try:
            command.make_context(command.name, list(words), parent=context.parent)
        except click.UsageError as error:
            pytest.fail(f"{page.name}: freehold {command.name} {' '.join(words)}: {error.format_message()}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_make_target_on_a_page_is_there(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for words in commands_in(page):
        if words[0] == "make":
            assert {word for word in words[1:] if "=" not in word} <= targets


def test_what_ci_runs_is_the_same_command() -> None:
    assert "make test" in (ROOT / ".ci" / "run").read_text()
