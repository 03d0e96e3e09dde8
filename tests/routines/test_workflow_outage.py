"""Workflows whose journal is a PostgreSQL database that goes away: they wait, say so, and go on when it is back."""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.agents.session_harness import SessionHarness
from tests.routines.workflow_crash_driver import no_secrets, start_here
from tests.support.condition import until
from tests.support.postgres import PostgresServer, running_postgres

from freehold.errors import FreeholdError
from freehold.manifest import load_manifest
from freehold.observe.probes import ComponentProbe, HealthMonitor
from freehold.routines import loops
from freehold.routines.workflows import journal as journal_module
from freehold.routines.workflows.cli import command
from freehold.routines.workflows.health import make_probe
from freehold.routines.workflows.journal import open_journal
from freehold.routines.workflows.postgres_journal import PostgresJournal
from freehold.routines.workflows.records import Workflow
from freehold.routines.workflows.section import WorkflowsSection
from freehold.routines.workflows.service import WorkflowService
from freehold.routines.workflows.store import WorkflowOrder
from freehold.timeline import Timeline

pytestmark = pytest.mark.shared_processes
FILE = """
import os, time
from freehold_workflow import event, step

def write(name):
    with open("{home}/lines", "a") as file:
        file.write(name + "\\n")

def work():
    write("begun")
    with open("{home}/pid", "w") as file:
        file.write(str(os.getpid()))
    while not os.path.exists("{home}/go"):
        time.sleep(0.01)
    write("ended")
    return "worked"

async def main(data):
    await step(write, "first")
    if data["event"]:
        await event("go")
    return await step(work)
"""


@pytest.fixture
def postgres(monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgresServer]:
    monkeypatch.setattr(journal_module, "RETRY_DELAY", 0.05)
    monkeypatch.setattr(loops, "RETRY_DELAY", 0.05)
    with running_postgres() as server:
        yield server


class Home:
    def __init__(self, root: Path, url: str) -> None:
        self.root = root
        self.settings = {"url": url, "schema": f"w{secrets.token_hex(6)}"}
        (root / "freehold.toml").write_text("")
        (root / "w.py").write_text(FILE.format(home=root))

    @asynccontextmanager
    async def run(self) -> AsyncIterator[WorkflowService]:
        nowhere: Any = None  # the files of these tests need no computer
        sessions = SessionHarness(nowhere, self.root, 600.0)

        async def read_source(file: str) -> str:
            return (self.root / file).read_text()

        with Timeline(self.root / "timeline.db") as timeline:
            journal = PostgresJournal(timeline, self.settings, no_secrets, {})
            async with asyncio.TaskGroup() as group:
                await sessions.start(group)
                service = WorkflowService(
                    sessions.sessions, linger=0.0, start=start_here, read_source=read_source, journal=journal
                )
                running = group.create_task(service.run())
                try:
                    yield service
                finally:
                    running.cancel()
                    await asyncio.gather(running, return_exceptions=True)
                    await sessions.stop()
            journal.close()

    def lines(self) -> list[str]:
        path = self.root / "lines"
        return path.read_text().split() if path.exists() else []


@pytest.fixture
def home(tmp_path: Path, postgres: PostgresServer) -> Home:
    return Home(tmp_path, postgres.url)


async def until_state(service: WorkflowService, begun: Workflow, *states: str) -> Workflow:
    async def find() -> Workflow | None:
        found = await service.journal.keep(service.store.get, begun.id)
        return found if found.state in states else None

    found = await until(find)
    assert found is not None
    return found


def begin(service: WorkflowService, *, event: bool) -> Workflow:
    return service.store.add(WorkflowOrder("w.py", {"event": event}), who="owner")


@pytest.mark.asyncio
async def test_a_workflow_that_waits_goes_on_when_the_database_is_back(home: Home, postgres: PostgresServer) -> None:
    (home.root / "go").touch()
    async with home.run() as service:
        await service.ready.wait()
        begun = begin(service, event=True)
        await until_state(service, begun, "waiting")
        postgres.kill()
        with pytest.raises(FreeholdError, match="in PostgreSQL, which cannot be reached"):
            service.store.steps.signal(begun.id, "go", 7, who="owner")
        postgres.start()
        service.store.steps.signal(begun.id, "go", 7, who="owner")
        assert (await until_state(service, begun, "done", "failed")).result == "worked"
    assert home.lines() == ["first", "begun", "ended"]


@pytest.mark.asyncio
async def test_a_step_that_ends_while_the_database_is_gone_is_stored_when_it_is_back(
    home: Home, postgres: PostgresServer
) -> None:
    async with home.run() as service:
        await service.ready.wait()
        begun = begin(service, event=False)
        await until(lambda: "begun" in home.lines())
        postgres.kill()
        (home.root / "go").touch()
        await until(lambda: "ended" in home.lines())
        with pytest.raises(FreeholdError, match="in PostgreSQL, which cannot be reached"):
            service.store.get(begun.id)
        postgres.start()
        assert (await until_state(service, begun, "done", "failed", "uncertain")).result == "worked"
    assert home.lines() == ["first", "begun", "ended"]


@pytest.mark.asyncio
async def test_the_owner_can_stop_a_workflow_while_the_database_is_gone(home: Home, postgres: PostgresServer) -> None:
    async with home.run() as service:
        await service.ready.wait()
        begun = begin(service, event=False)
        await until(lambda: (home.root / "pid").exists() and bool((home.root / "pid").read_text()))
        pid = int((home.root / "pid").read_text())
        postgres.kill()
        await service.stop_all()
        await until(lambda: not Path(f"/proc/{pid}").exists())
        postgres.start()
        assert (await until_state(service, begun, "cancelled", "done")).error == "The owner stopped all agents"
    assert home.lines() == ["first", "begun"]


@pytest.mark.asyncio
async def test_a_freehold_that_starts_without_the_database_says_so_and_begins_when_it_is_there(
    home: Home, postgres: PostgresServer
) -> None:
    (home.root / "go").touch()
    postgres.kill()
    async with home.run() as service:
        with pytest.raises(FreeholdError, match="in PostgreSQL, which cannot be reached"):
            await service.wait_ready()
        postgres.start()
        await service.ready.wait()
        await service.wait_ready()
        assert (await until_state(service, begin(service, event=False), "done", "failed")).result == "worked"


@pytest.mark.asyncio
async def test_health_says_that_the_database_is_gone_and_is_well_when_it_is_back(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    settings = f'url = "{postgres.url}"\nschema = "w{secrets.token_hex(6)}"\n'
    (tmp_path / "freehold.toml").write_text(f"[workflows.postgres]\n{settings}")
    manifest = load_manifest(tmp_path / "freehold.toml", {}, home=tmp_path).manifest
    with Timeline(tmp_path / "timeline.db") as timeline:
        services: Any = SimpleNamespace(manifest=manifest, timeline=timeline, vault=SimpleNamespace(get=no_secrets))
        journal = open_journal(manifest.section(WorkflowsSection), timeline, no_secrets)
        health = HealthMonitor([ComponentProbe("workflows", make_probe(services), timeout=60)])

        async def is_ok() -> bool:
            (state,) = await health.probe()
            return state.state == "ok"

        assert await is_ok()
        postgres.kill()
        assert not await is_ok()
        (state,) = health.states
        assert state.state == "failed"
        assert state.last_error is not None
        assert "in PostgreSQL, which cannot be reached" in state.last_error
        postgres.start()
        await until(is_ok)
        journal.close()


def test_the_command_line_uses_the_database_and_says_when_it_is_gone(tmp_path: Path, postgres: PostgresServer) -> None:
    (tmp_path / "freehold.toml").write_text(
        f'[workflows.postgres]\nurl = "{postgres.url}"\nschema = "w{secrets.token_hex(6)}"\n'
    )

    def run(*words: str) -> Result:
        return CliRunner().invoke(command, [*words, "--home", str(tmp_path)])

    id = json.loads(run("run", "w.py", "--json").stdout)["id"]
    assert "is cancelled" in run("cancel", id).output
    assert f"{id}  " in run("list").output
    with Timeline(tmp_path / "timeline.db") as timeline:
        assert [event.kind for event in timeline.read(kinds=["workflow.*"])] == ["workflow.added", "workflow.cancelled"]
        assert timeline.query("SELECT count(*) FROM workflows_workflow") == [(0,)]
    postgres.kill()
    problem = run("list").exception
    assert isinstance(problem, FreeholdError)
    assert "The workflows are in PostgreSQL, which cannot be reached" in problem.message
