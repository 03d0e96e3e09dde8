"""Backups of a Freehold that runs: the keeper's program, the API with its scopes, the health, and a restored one that starts."""

import contextlib
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.support.backup_home import describe_tree
from tests.support.condition import DEADLINE, until
from tests.support.freehold import FreeholdHarness
from tests.support.running_freehold import FreeholdOptions, RunningFreehold

from freehold.client import Freehold
from freehold.errors import FreeholdError
from freehold.identity.tokens import ApiTokens

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
FREEHOLD = FreeholdOptions(environment={"FREEHOLD_BACKUP_TO": "{home}-backups"})


async def _health(freehold: RunningFreehold) -> dict[str, Any]:
    components = (await freehold.http.get("/health")).json()["components"]
    return next(one for one in components if one["name"] == "backup")


async def test_from_the_first_start_to_a_restored_freehold_that_starts(
    freehold: RunningFreehold, tmp_path: Path
) -> None:
    """Nothing is stopped meanwhile; what was written just before is in the backup."""
    assert (await freehold.call("GET", "/v1/backup"))["state"] == "warning"
    await until(lambda: _is(freehold, "degraded"))
    assert "freehold backup key" in (await _health(freehold))["last_error"]

    made = freehold.harness.run("backup", "key")
    assert made.returncode == 0, made.stderr
    key = next(line.strip() for line in made.stdout.splitlines() if "AGE-SECRET-KEY-1" in line)
    freehold.file("notes.txt").write_text("written just before")
    await until(lambda: _start(freehold, "now"))
    await until(lambda: _has_backup(freehold))
    found = await freehold.call("GET", "/v1/backup")
    assert (found["state"], found["trouble"], found["failure"]) == ("ok", None, None)
    assert found["recovery_key"]["recipient"].startswith("age1")
    assert key not in str(found)
    await until(lambda: _is(freehold, "ok"))
    events = (await freehold.call("GET", "/v1/timeline?kind=backup.*&limit=50"))["events"]
    assert {"backup.key_made", "backup.requested", "backup.completed"} <= {event["kind"] for event in events}

    into = FreeholdHarness(tmp_path / "moved")
    place = f"{freehold.home.root}-backups"
    done = freehold.harness.run(
        "restore-from", place, "--into", str(into.home.root), "--key-file", _write(tmp_path / "key", key)
    )
    assert done.returncode == 0, done.stderr
    assert (into.home.workspace / "notes.txt").read_text() == "written just before"
    with into.keeper() as keeper:
        keeper.next("ready")
        restored = into.run("log", "--json")
        assert restored.returncode == 0, restored.stderr
        assert describe_tree(into.home.workspace) == describe_tree(freehold.home.workspace)
        assert into.run("timeline", "verify").returncode == 0


async def test_a_token_needs_the_scope(freehold: RunningFreehold) -> None:
    with ApiTokens(freehold.home.identity, owner=None) as tokens:
        _, token = tokens.create("reader", ["read"], None)
    headers = {"authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(base_url=freehold.url, headers=headers, trust_env=False, timeout=DEADLINE) as client:
        assert (await client.get("/v1/backup")).status_code == 200
        assert (await client.post("/v1/backup/runs", json={"work": "now"})).status_code == 403
    async with httpx2.AsyncClient(base_url=freehold.url, trust_env=False, timeout=DEADLINE) as client:
        assert (await client.get("/v1/backup")).status_code == 401
    assert (await freehold.http.post("/v1/backup/runs", json={"work": "prune"})).status_code == 422


async def test_the_client_reads_and_starts(freehold: RunningFreehold) -> None:
    async with Freehold(freehold.url, token=freehold.token) as home:
        found = await home.backup.get()
        assert found.enabled
        assert found.keep["hourly"] == 24
        if found.recovery_key is not None and found.running is None:
            with contextlib.suppress(FreeholdError):  # the program may have begun other work meanwhile
                assert (await home.backup.start(work="verify")).work == "verify"


async def _is(freehold: RunningFreehold, state: str) -> bool:
    return bool((await _health(freehold))["state"] == state)


async def _start(freehold: RunningFreehold, work: str) -> bool:
    """False while the program does other work."""
    return (await freehold.http.post("/v1/backup/runs", json={"work": work})).status_code == 202


async def _has_backup(freehold: RunningFreehold) -> bool:
    found = await freehold.call("GET", "/v1/backup")
    return found["last"] is not None and found["running"] is None


def _write(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)
