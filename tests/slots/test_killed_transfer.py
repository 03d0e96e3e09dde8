"""Moves and imports of every slot that end by kill -9, at each of their steps. Done again, they lose and double nothing."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import psycopg
import pytest
from tests.slots.conftest import SlotBench
from tests.slots.test_transfer import freehold
from tests.support.nats import TOKEN
from tests.support.solid import SolidPod

from freehold.slots import SlotName

pytestmark = pytest.mark.shared_processes
Moment = Literal["in the write", "after the write", "at the switch"]
STAMP = "2025-01-01T00:00:00Z"

RECORDS: dict[SlotName, Callable[[int], dict[str, Any]]] = {
    "beads": lambda n: {"id": f"bd-{n:04}", "title": f"item {n}", "created_at": STAMP, "updated_at": STAMP},
    "memory": lambda n: {"id": f"m-{n:04}", "text": f"note {n}", "created": 5.0, "updated": 5.0},
    "pods": lambda n: {"id": f"notes/{n:04}.txt", "media": "text/plain", "content": f"note {n}"},
    "events": lambda n: {
        "specversion": "1.0",
        "id": f"{n:04}",
        "source": "urn:elsewhere",
        "type": "com.example.told",
        "time": STAMP,
        "data": {"n": n},
    },
}
"""Three pages of each are moved, the last one not full."""
COUNT: dict[SlotName, int] = {"beads": 450, "memory": 450, "pods": 45, "events": 450}

DYING = """\
import json, os, signal, sys, threading
from freehold.cli.main import main
from freehold.manifest import edit
from freehold.slots.slot import Slot

moment, sys.argv = sys.argv[1], ["freehold", *sys.argv[2:]]
call, pages = Slot.call, 0

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

async def dying_call(self, request, caller):
    global pages
    pages += request.method == "import"
    is_last = request.method == "import" and pages == 2
    if is_last and moment == "in the write":
        threading.Timer(0.004, die).start()
    reply = await call(self, request, caller)
    if is_last and moment != "at the switch":
        die()
    return reply

Slot.call = dying_call
if moment == "at the switch":
    edit.edit_manifest = die
main()
"""


@pytest.fixture
def home_of(bench: SlotBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[SlotName, str], Path]:
    """A home with one slot that is kept there, and the settings of its external service."""

    def make(name: SlotName, folder: str) -> Path:
        monkeypatch.setenv("NATS_TOKEN", TOKEN)
        if name == "pods":
            solid: SolidPod = bench.request.getfixturevalue("solid")
            monkeypatch.setenv("SOLID_SECRET", solid.client_secret)
        settings = "\n".join(f"{key} = {json.dumps(value)}" for key, value in bench.settings_of(name).items())
        home = tmp_path / folder
        home.mkdir(mode=0o700)
        text = f'[slots.{name}]\nmode = "local"\n[slots.{name}.settings]\n{settings}\n'
        (home / "freehold.toml").write_text(text)
        return home

    return make


def write_records(name: SlotName, file: Path) -> list[Any]:
    records = [RECORDS[name](n) for n in range(COUNT[name])]
    file.write_text("\n".join(json.dumps(one) for one in records))
    return records


def read_all(home: Path, name: SlotName) -> list[Any]:
    """What an export has, without the events that the home itself has told."""
    out = home / "out.jsonl"
    freehold(home, "slots", "export", name, "-o", str(out))
    found = [json.loads(line) for line in out.read_text().splitlines()]
    return [one for one in found if name != "events" or one["source"] == "urn:elsewhere"]


def ids(records: list[Any]) -> list[str]:
    return [one["id"] for one in records if not one["id"].endswith("/")]


def end_by_kill(moment: Moment, home: Path, *words: str) -> None:
    command = [sys.executable, "-c", DYING, moment, *words, "--home", str(home)]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, env=os.environ, timeout=60)
    assert done.returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("name", "moment"),
    [
        ("beads", "at the switch"),
        ("memory", "in the write"),
        ("memory", "after the write"),
        ("pods", "in the write"),
        ("events", "in the write"),
    ],
)
def test_a_move_that_was_killed_goes_on_and_both_places_are_the_same(
    home_of: Callable[[SlotName, str], Path], tmp_path: Path, name: SlotName, moment: Moment
) -> None:
    home = home_of(name, "home")
    written = write_records(name, tmp_path / "in.jsonl")
    freehold(home, "slots", "import", name, str(tmp_path / "in.jsonl"))
    before = read_all(home, name)
    end_by_kill(moment, home, "slots", "move", name, "--to", "external")
    assert 'mode = "local"' in (home / "freehold.toml").read_text()
    assert read_all(home, name) == before
    freehold(home, "slots", "move", name, "--to", "external")
    assert 'mode = "external"' in (home / "freehold.toml").read_text()
    after = read_all(home, name)
    assert after == before
    assert ids(after) == [one["id"] for one in written]


@pytest.mark.parametrize("moment", ["in the write", "after the write", "at the switch"])
def test_a_move_to_a_neighbour_and_back_that_was_killed_goes_on(
    bench: SlotBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: Moment
) -> None:
    bench.neighbour.forget_beads()
    monkeypatch.setenv("NEIGHBOUR_TOKEN", bench.neighbour.token)
    home, settings = tmp_path / "home", bench.neighbour_settings
    home.mkdir(mode=0o700)
    (home / "freehold.toml").write_text(
        f'[slots.beads]\nmode = "local"\n[slots.beads.settings]\n'
        f"url = {json.dumps(settings['url'])}\ntoken = {json.dumps(settings['token'])}\n"
    )
    written = write_records("beads", tmp_path / "in.jsonl")
    freehold(home, "slots", "import", "beads", str(tmp_path / "in.jsonl"))
    before = read_all(home, "beads")
    for here, there in (("local", "external"), ("external", "local")):
        end_by_kill(moment, home, "slots", "move", "beads", "--to", there)
        assert f'mode = "{here}"' in (home / "freehold.toml").read_text()
        assert read_all(home, "beads") == before
        freehold(home, "slots", "move", "beads", "--to", there)
        assert f'mode = "{there}"' in (home / "freehold.toml").read_text()
        assert read_all(home, "beads") == before
    assert ids(before) == [one["id"] for one in written]


def test_a_move_back_that_was_killed_goes_on(home_of: Callable[[SlotName, str], Path], tmp_path: Path) -> None:
    name: SlotName = "memory"
    home = home_of(name, "home")
    write_records(name, tmp_path / "in.jsonl")
    text = (home / "freehold.toml").read_text()
    (home / "freehold.toml").write_text(text.replace('"local"', '"external"'))
    freehold(home, "slots", "import", name, str(tmp_path / "in.jsonl"))
    before = read_all(home, name)
    end_by_kill("in the write", home, "slots", "move", name, "--to", "local")
    freehold(home, "slots", "move", name, "--to", "local")
    assert read_all(home, name) == before


@pytest.mark.parametrize("name", ["memory", "pods", "events"])
def test_an_import_that_was_killed_is_done_again_and_everything_is_there_once(
    home_of: Callable[[SlotName, str], Path], tmp_path: Path, name: SlotName
) -> None:
    home, file = home_of(name, "home"), tmp_path / "in.jsonl"
    written = write_records(name, file)
    end_by_kill("in the write", home, "slots", "import", name, str(file))
    freehold(home, "slots", "import", name, str(file))
    found = read_all(home, name)
    assert ids(found) == [one["id"] for one in written]
    content = {"memory": "text", "pods": "content", "events": "data"}[name]
    assert [one[content] for one in found if content in one] == [one[content] for one in written]


def test_what_a_pseudonym_stands_for_does_not_leave_with_a_move(
    home_of: Callable[[SlotName, str], Path], bench: SlotBench
) -> None:
    home = home_of("memory", "home")
    text = (home / "freehold.toml").read_text()
    (home / "freehold.toml").write_text(text.replace('mode = "local"', 'mode = "local"\nprivacy = "soft"'))
    freehold(home, "memory", "add", "Write to mara.olsen@example.org about the tent")
    freehold(home, "slots", "move", "memory", "--to", "external")
    with psycopg.connect(bench.settings["url"]) as connection:
        ((body, search),) = connection.execute(f"SELECT body, search FROM {bench.unique}.memory_entry").fetchall()
    assert "mara" not in body + search
    assert "[mail " in body
    assert "mara.olsen@example.org" in freehold(home, "memory")
    freehold(home, "slots", "move", "memory", "--to", "local")
    assert "mara.olsen@example.org" in freehold(home, "memory")
