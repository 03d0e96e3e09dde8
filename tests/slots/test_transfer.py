"""Moving a slot loses nothing, also when it is killed in the middle, and an owner's own server can be tried."""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tomllib
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner
from tests.slots.conftest import SlotBench
from tests.support.condition import wait_until
from tests.support.postgres import PostgresServer

from freehold.cli.main import freehold_command
from freehold.errors import FreeholdError
from freehold.home import find_home
from freehold.keeper.lock import lock_home
from freehold.slots import SlotCaller, SlotError
from freehold.slots.beads.contract import CreateBead, ImportBeads, ListBeads
from freehold.slots.transfer import digest_records, import_lines, move_records

pytestmark = pytest.mark.shared_processes
OWNER = SlotCaller("owner")


def freehold(home: Path, *words: str) -> str:
    done = CliRunner().invoke(freehold_command, [*words, "--home", str(home)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture
def home(bench: SlotBench, tmp_path: Path) -> Path:
    settings = "\n".join(f"{name} = {json.dumps(value)}" for name, value in bench.settings.items())
    place = tmp_path / "home"
    place.mkdir(mode=0o700)
    (place / "freehold.toml").write_text(f'[slots.beads]\nmode = "local"\n[slots.beads.settings]\n{settings}\n')
    return place


def test_a_slot_moves_to_a_database_and_back(home: Path) -> None:
    first = json.loads(freehold(home, "beads", "create", "first", "--label", "x", "--json"))
    freehold(home, "beads", "create", "second", "--needs", first["id"])
    before = freehold(home, "slots", "export", "beads")
    assert "2 entries are now kept by the external service" in freehold(
        home, "slots", "move", "beads", "--to", "external"
    )
    assert tomllib.loads((home / "freehold.toml").read_text())["slots"]["beads"]["mode"] == "external"
    assert freehold(home, "slots", "export", "beads") == before
    freehold(home, "beads", "comment", first["id"], "from there")
    after = freehold(home, "slots", "export", "beads")
    assert "2 entries are now kept here" in freehold(home, "slots", "move", "beads", "--to", "local")
    assert freehold(home, "slots", "export", "beads") == after
    assert not (home / "move-beads.json").exists()


def test_a_slot_of_a_running_freehold_is_not_moved(home: Path) -> None:
    with lock_home(find_home(home)), pytest.raises(FreeholdError) as refused:
        freehold(home, "slots", "move", "beads", "--to", "external")
    assert refused.value.code == "keeper.already-running"


def test_export_and_import_go_through_a_file(home: Path, tmp_path: Path) -> None:
    freehold(home, "beads", "create", "kept")
    file = tmp_path / "beads.jsonl"
    freehold(home, "slots", "export", "beads", "-o", str(file))
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    (other / "freehold.toml").write_text('[slots]\nbeads = "local"\n')
    assert "1 entries read" in freehold(other, "slots", "import", "beads", str(file))
    assert freehold(other, "slots", "export", "beads") == freehold(home, "slots", "export", "beads")
    file.write_bytes(b'{"id": "a", "title": "good"}\n{"id": \xff\n')
    with pytest.raises(SlotError) as refused:
        freehold(other, "slots", "import", "beads", str(file))
    assert "Line 2" in refused.value.message


def test_trying_a_database_leaves_nothing_behind(home: Path, postgres: PostgresServer) -> None:
    with psycopg.connect(postgres.url) as connection:
        before = connection.execute("SELECT nspname FROM pg_namespace ORDER BY 1").fetchall()
    shown = freehold(home, "slots", "try", "beads")
    assert shown.count("ok  ") == 6
    with psycopg.connect(postgres.url) as connection:
        assert connection.execute("SELECT nspname FROM pg_namespace ORDER BY 1").fetchall() == before
    assert json.loads(freehold(home, "beads", "--json")) == []


def test_trying_a_database_that_does_not_answer_says_why(home: Path) -> None:
    text = (home / "freehold.toml").read_text()
    (home / "freehold.toml").write_text(text.replace("/tmp/", "/nowhere/"))
    done = CliRunner().invoke(freehold_command, ["slots", "try", "beads", "--home", str(home)])
    assert done.exit_code == 1
    assert "failed  Connect" in done.output
    assert "cannot be reached" in done.output


MOVE = """\
import sys
from freehold.cli.main import main
sys.argv = ["freehold", "slots", "move", "beads", "--to", "external", "--home", sys.argv[1]]
main()
"""


def test_a_move_that_was_killed_goes_on_and_loses_nothing(home: Path, tmp_path: Path) -> None:
    """Killed after its first checkpoint, wherever it is then."""
    lines = "\n".join(json.dumps({"id": f"bd-{n:05}", "title": f"item {n}"}) for n in range(1000))
    (tmp_path / "many.jsonl").write_text(lines)
    freehold(home, "slots", "import", "beads", str(tmp_path / "many.jsonl"))
    moving = subprocess.Popen([sys.executable, "-c", MOVE, home], stdout=subprocess.DEVNULL)
    wait_until(lambda: (home / "move-beads.json").exists() or moving.poll() is not None)
    os.kill(moving.pid, signal.SIGKILL)
    moving.wait()
    if tomllib.loads((home / "freehold.toml").read_text())["slots"]["beads"]["mode"] == "local":
        freehold(home, "slots", "move", "beads", "--to", "external")
    freehold(home, "slots", "export", "beads", "-o", str(tmp_path / "out.jsonl"))
    found = [json.loads(line)["id"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert found == [f"bd-{n:05}" for n in range(1000)]


IMPORT = """\
import sys
from freehold.cli.main import main
sys.argv = ["freehold", "slots", "import", "beads", sys.argv[2], "--home", sys.argv[1]]
main()
"""


def test_an_import_that_was_killed_is_done_again_without_a_loss_or_a_double(home: Path, tmp_path: Path) -> None:
    """Killed after its first page, wherever it is then. Count and hash tell that all of it is there once."""
    records = [{"id": f"bd-{n:05}", "title": f"item {n}", "created_at": "2025-01-01T00:00:00Z"} for n in range(2000)]
    file = tmp_path / "many.jsonl"
    file.write_text("\n".join(json.dumps(one) for one in records))
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    (other / "freehold.toml").write_text('[slots]\nbeads = "local"\n')
    freehold(other, "slots", "import", "beads", str(file))
    importing = subprocess.Popen([sys.executable, "-c", IMPORT, home, file], stdout=subprocess.DEVNULL)

    def has_begun() -> bool:
        try:
            with contextlib.closing(sqlite3.connect(f"file:{home}/timeline.db?mode=ro", uri=True)) as db:
                return bool(db.execute("SELECT count(*) FROM event WHERE kind = 'beads.imported'").fetchone()[0])
        except sqlite3.Error:
            return False

    wait_until(lambda: has_begun() or importing.poll() is not None)
    os.kill(importing.pid, signal.SIGKILL)
    importing.wait()
    freehold(home, "slots", "import", "beads", str(file))

    def read(place: Path) -> list[tuple[str, str]]:
        out = tmp_path / f"{place.name}.jsonl"
        freehold(place, "slots", "export", "beads", "-o", str(out))
        found = [json.loads(line) for line in out.read_text().splitlines()]
        return [(one["id"], one["title"]) for one in found]

    assert read(home) == read(other) == [(one["id"], one["title"]) for one in records]


async def test_a_target_with_other_entries_is_told_and_nothing_is_switched(bench: SlotBench, tmp_path: Path) -> None:
    async with bench.open("beads", "local") as source, bench.open("beads", "external") as target:
        await source.call(CreateBead("mine"), OWNER)
        await target.call(CreateBead("theirs"), OWNER)
        with pytest.raises(SlotError) as refused:
            await move_records(source, target, tmp_path / "checkpoint")
        assert refused.value.problem == "conflict"
        assert len((await source.call(ListBeads(), OWNER)).beads) == 1


async def test_the_digest_sees_every_difference(bench: SlotBench) -> None:
    async with bench.open("beads", "local") as slot:
        seen = {await digest_records(slot)}
        for changed in ("a", "b"):
            record = {"id": "x", "title": changed, "updated_at": f"2025-01-0{1 + len(seen)}T00:00:00Z"}
            await slot.call(ImportBeads((record,)), OWNER)
            seen.add(await digest_records(slot))
        assert len(seen) == 3
        assert await import_lines(slot, ["", "  \n"]) == 0
