"""The commands in the README run, and the commands on all pages are valid; `test_page_commands` runs these."""

import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from tests.support.freehold import PROCESS_TIMEOUT, ROOT, FreeholdHarness

from freehold.cli.main import freehold_command

# This page shows the command inside the computer, which has the same name.
INSIDE = ROOT / "docs" / "guides" / "host-tools.md"
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(page for page in sorted((ROOT / "docs").glob("guides/*.md")) if page != INSIDE),
    *sorted((ROOT / "docs").glob("tutorials/*.md")),
    *(ROOT / "docs" / name for name in ("quickstart.md", "troubleshooting.md", "faq.md", "security.md")),
]
BLOCK = re.compile(r"^```(?:sh|bash|console|shell)\n(.*?)^```", re.MULTILINE | re.DOTALL)
# In a shell, what follows one of these belongs to another command.
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
                words.append("1" if word.startswith("$") else word)  # a variable that the reader sets
            while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
                words.pop(0)
            if words:
                found.append(words)
    return found


def freehold_commands(page: Path) -> list[list[str]]:
    return [words[1:] for words in commands_in(page) if Path(words[0]).name == "freehold"]


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FreeholdHarness]:
    harness = FreeholdHarness(tmp_path_factory.mktemp("readme"))
    with harness.keeper() as keeper:
        keeper.next("ready")
        (harness.home.workspace / "notes.md").write_text("first")
        yield harness
        keeper.process.send_signal(signal.SIGTERM)
        keeper.process.wait(timeout=PROCESS_TIMEOUT)


@pytest.mark.parametrize("words", freehold_commands(ROOT / "README.md"), ids=" ".join)
def test_a_command_of_the_readme_works(words: list[str], harness: FreeholdHarness) -> None:
    if words[0] == "doctor":
        words = [*words, "--quick"]  # the other attempts have their own tests
    if "--follow" in words or "-f" in words:
        argv = [sys.executable, "-m", "freehold.cli.main", *words]
        with subprocess.Popen(argv, env=harness.environment, stdout=subprocess.PIPE, text=True) as following:
            assert following.stdout is not None
            assert following.stdout.readline()
            following.terminate()
        return
    done = harness.run(*words)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_the_readme_has_commands() -> None:
    assert len(freehold_commands(ROOT / "README.md")) >= 5
    assert ["make", "up"] in commands_in(ROOT / "README.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_on_a_page_is_valid(page: Path) -> None:
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
            if (
                isinstance(error, click.BadParameter)
                and error.param is not None
                and isinstance(error.param.type, click.Path)
            ):
                continue  # a file that the reader has
            pytest.fail(f"{page.name}: freehold {command.name} {' '.join(words)}: {error.format_message()}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_make_target_on_a_page_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for words in commands_in(page):
        if words[0] == "make":
            assert {word for word in words[1:] if "=" not in word} <= targets


def test_ci_runs_make_test() -> None:
    assert "make test" in (ROOT / ".ci" / "run").read_text()
