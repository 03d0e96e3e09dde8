"""`--json`: every command says what it prints, prints that, and writes each moment in the same form."""

import dataclasses
import json
import re
import types
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import click
import pytest
from click.testing import CliRunner
from tools.generated.json_shapes import is_shape, list_fields, load_shape

from freehold.agents.sessions.store import SessionStore
from freehold.cli._json_output import JsonOption, JsonOutput
from freehold.cli.main import freehold_command
from freehold.egress import NetworkRequests
from freehold.egress import ensure_tables as ensure_egress_tables
from freehold.egress.names import parse_host
from freehold.egress.vault import Vault
from freehold.history import Author, History, HistorySettings
from freehold.home import Home, ensure_private_folder, find_home
from freehold.identity.sign_ins import SignIns
from freehold.strict_json import EpochNanoseconds, EpochSeconds, IsoTime
from freehold.timeline import Timeline

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
TIMES = {get_args(hint)[1] for hint in (EpochSeconds, EpochNanoseconds, IsoTime)}
# How often something was used, and what an escape attempt has seen.
NO_TIMES = {("used", int), ("seen", str)}
NAMES_OF_TIMES = frozenset(
    [
        "at",
        "since",
        "created",
        "updated",
        "seen",
        "expires",
        "used",
        "set_at",
        "used_at",
        "began",
        "mtime",
        "first_seen",
        "last_seen",
        "last_archived",
        "time",
    ]
)
SLOTS = "".join(f'[slots.{name}]\nmode = "local"\n' for name in ("beads", "memory", "events", "pods"))
PLAIN: dict[Any, Any] = {str: str, int: int, float: (int, float), bool: bool}


def commands(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield words, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None and not below.hidden:
                yield from commands(below, (*words, name))


def outputs() -> Iterator[tuple[str, JsonOutput]]:
    for words, command in commands(freehold_command):
        for parameter in command.params:
            if isinstance(parameter, JsonOption):
                for output in parameter.outputs:
                    yield " ".join(words), output


def is_time(hint: Any) -> bool:
    choices = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    return any(choice is datetime or TIMES & set(getattr(choice, "__metadata__", ())) for choice in choices)


def find_unmarked(shape: type, where: str) -> Iterator[str]:
    for name, (hint, _) in list_fields(shape).items():
        place = f"{where}.{name}"
        if name in NAMES_OF_TIMES and not is_time(hint) and hint is not bool and (name, hint) not in NO_TIMES:
            yield place
        for inner in find_shapes(hint):
            yield from find_unmarked(inner, place)


def find_shapes(hint: Any) -> Iterator[type]:
    if is_shape(hint):
        yield hint
    for argument in get_args(hint):
        yield from find_shapes(argument)


def check(hint: Any, value: object, where: str) -> None:
    """That a value of JSON has the declared type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        if value is None and types.NoneType in arguments:
            return
        rest = [choice for choice in arguments if choice is not types.NoneType]
        assert value is not None, where
        if len(rest) == 1:
            check(rest[0], value, where)
        else:
            assert type(value) in rest, where
    elif hint is datetime or TIMES & set(getattr(hint, "__metadata__", ())):
        assert isinstance(value, str), where
        assert TIME.fullmatch(value), (where, value)
    elif origin is Literal:
        assert value in arguments, (where, value)
    elif origin in (list, tuple):
        assert isinstance(value, list), where
        for item in value:
            check(arguments[0], item, f"{where}[]")
    elif isinstance(origin, type) and issubclass(origin, Mapping):
        assert isinstance(value, dict), where
        for name, item in value.items():
            check(arguments[1], item, f"{where}.{name}")
    elif is_shape(hint):
        assert isinstance(value, dict), where
        fields = list_fields(hint)
        assert set(value) <= set(fields), where
        for name, (inner, optional) in fields.items():
            assert optional or name in value, f"{where}.{name}"
            if name in value:
                check(inner, value[name], f"{where}.{name}")
    elif hint in PLAIN:
        assert isinstance(value, PLAIN[hint]), (where, value)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home that has something of everything, with nothing running."""
    home = find_home(tmp_path_factory.mktemp("json") / "home")
    for folder in (home.root, home.vault, home.logs):
        ensure_private_folder(folder)
    home.workspace.mkdir()
    home.agent_home.mkdir()
    backups = f'[backup]\nto = "{home.root.parent / "backups"}"\n'
    home.manifest.write_text(
        backups + '[egress]\nallow = ["api.test"]\n[models.local]\nbase_url = "http://127.0.0.1:1/v1"\n' + SLOTS
    )
    roots = {"workspace": home.workspace, "home": home.agent_home}
    with History(home.history, roots, HistorySettings(quiet=0)) as history:
        history.snapshot(why="first")
        (home.workspace / "a.txt").write_text("one\n")
        history.snapshot("turn", Author("agent", agent="claude", turn="1", prompt="write it"), "write it")
    with Timeline(home.timeline) as timeline:
        ensure_egress_tables(timeline)
        store = SessionStore(timeline)
        store.prepare()
        session = store.create("claude", "A title", None, who="owner").id
        NetworkRequests(timeline).add(parse_host("example.org"), 443, "agent:claude", session)
    Vault(home.vault).set("key", "value")
    with SignIns(home.identity, owner=None) as sign_ins:
        sign_ins.create(None, label="test", address="127.0.0.1", method="link")
    line = {"time": "2026-01-31T12:00:00.000Z", "program": "gateway", "stream": "stdout", "message": "hello"}
    (home.logs / "gateway.jsonl").write_text(json.dumps(line) + "\n")
    for words in (
        ["beads", "create", "Mend the roof"],
        ["memory", "add", "I prefer aisle seats"],
        ["pods", "grant", "claude", "/"],
        ["routines", "add", "pulse", "--every", "30m", "--prompt", "Look."],
        ["routines", "add", "hook", "--webhook", "--prompt", "Look."],
    ):
        result = CliRunner().invoke(freehold_command, [*words, "--home", str(home.root)])
        assert result.exit_code == 0, result.output
    return home


def test_every_command_with_json_says_what_it_prints() -> None:
    silent = [
        " ".join(words)
        for words, command in commands(freehold_command)
        for parameter in command.params
        if "--json" in parameter.opts and not (isinstance(parameter, JsonOption) and parameter.outputs)
    ]
    assert silent == []
    assert len(list(outputs())) > 35


def test_every_moment_is_declared_as_one() -> None:
    assert [place for words, output in outputs() for place in find_unmarked(load_shape(output), words)] == []


@pytest.mark.parametrize(
    "words",
    [
        "version",
        "check",
        "log",
        "diff 2",
        "show 2:workspace/a.txt",
        "undo --dry-run",
        "undo",
        "redo",
        "history verify",
        "history size",
        "history collect",
        "token create script --scope read",
        "token list",
        "sign-ins list",
        "secret list",
        "sessions",
        "egress",
        "usage",
        "stop now",
        "stop --lift",
        "timeline",
        "timeline verify",
        "timeline size",
        "timeline archive",
        "retention",
        "models",
        "agents",
        "logs",
        "beads",
        "beads create Paint",
        "memory",
        "memory search seats",
        "memory status",
        "events publish com.example.done",
        "events delivery",
        "events dead",
        "pods grants",
        "pods put a.txt /dev/null",
        "pods",
        "slots",
        "routines run pulse",
        "routines",
        "routines list",
        "routines show pulse",
        "routines log",
        "routines webhook hook",
        "workflow run nightly.py",
        "workflow",
        "workflow list",
        "backup key",
        "backup now",
        "backup list",
        "backup verify",
        "backup verify --restore",
        "backup prune",
        "backup status",
        "skills add shipped --all --yes",
        "skills",
        "skills show pdf",
        "skills check",
    ],
)
def test_what_is_printed_is_what_is_declared(home: Home, words: str) -> None:
    result = CliRunner().invoke(freehold_command, [*words.split(), "--json", "--home", str(home.root)])
    if "version" in words:
        result = CliRunner().invoke(freehold_command, ["version", "--json"])
    assert result.exit_code == 0, result.output or result.exception
    parts = words.split()
    declared = [output for name, output in outputs() if name == " ".join(parts[: len(name.split())]) and name]
    chosen = [output for output in declared if output.when in parts] or [one for one in declared if not one.when]
    output = chosen[-1]
    shape = load_shape(output)
    if output.form == "lines":
        found = [json.loads(line) for line in result.stdout.splitlines()]
    else:
        found = json.loads(result.stdout)
        found = found if output.form == "list" else [found]
    assert found
    for value in found:
        check(shape, value, words)


def test_a_moment_before_1970_and_one_of_nanoseconds_have_the_same_form(tmp_path: Path) -> None:
    from freehold.cli._json_output import encode_output

    @dataclasses.dataclass
    class Moments:
        early: EpochSeconds
        fine: EpochNanoseconds
        none: EpochSeconds | None

    assert encode_output(Moments(-1.5, 1_000_000_000_123_456_789, None)) == {
        "early": "1969-12-31T23:59:58.500Z",
        "fine": "2001-09-09T01:46:40.123Z",
        "none": None,
    }
