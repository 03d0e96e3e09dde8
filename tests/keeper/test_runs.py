"""Kill -9 of the keeper while a run works: the run is told lost, nothing is done twice, and no change set is lost."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.condition import until
from tests.support.running_freehold import FreeholdOptions, RunningFreehold, run_freehold

pytestmark = pytest.mark.shared_processes
OPTIONS = FreeholdOptions(
    agents=("builtin",), manifest='[slots]\norchestrator = "local"\n[agents]\ndefault = "builtin"\n'
)
RUNS = "/v1/slots/orchestrator/runs"


async def spawn(freehold: RunningFreehold, name: str, more: str = "") -> dict[str, Any]:
    """A run that writes a file of its own."""
    prompt = f"WRITE /workspace/{name}.txt words\n{more}SAY Done."
    answer = await freehold.http.post(RUNS, json={"prompt": prompt, "title": name, "key": name})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def allow_first(freehold: RunningFreehold, session: str) -> str:
    """Allows the first thing that a session asks. Returns its id."""
    asked: list[str] = []

    async def asks() -> bool:
        found = await freehold.call("GET", "/v1/approvals")
        asked[:] = [one["id"] for one in found if one["session"] == session]
        return bool(asked)

    await until(asks)
    await freehold.call("POST", f"/v1/approvals/{asked[0]}", answer="once")
    return asked[0]


async def wait_over(freehold: RunningFreehold, run: str) -> dict[str, Any]:
    found: dict[str, Any] = {}

    async def is_over() -> bool:
        answer = await freehold.http.get(f"{RUNS}/{run}")
        found.update(answer.json() if answer.status_code == 200 else {})
        return found.get("finished") is not None

    await until(is_over)
    return found


async def test_a_run_whose_keeper_was_killed_is_told_lost_and_its_changes_are_kept(tmp_path: Path) -> None:
    async with run_freehold(tmp_path, OPTIONS) as freehold:
        await until(freehold.is_connected)
        done = await spawn(freehold, "done")
        await allow_first(freehold, done["session"])
        assert (await wait_over(freehold, done["id"]))["state"] == "done"
        lost = await spawn(freehold, "kept", "WRITE /workspace/never.txt words\n")
        first = await allow_first(freehold, lost["session"])

        async def asks_again() -> bool:
            found = await freehold.call("GET", "/v1/approvals")
            return any(one["session"] == lost["session"] and one["id"] != first for one in found)

        await until(asks_again)
        freehold.keeper.kill()
        with freehold.harness.keeper() as again:
            again.next("ready")
            found = await wait_over(freehold, lost["id"])
            assert (found["state"], found["added"], found["outcome"]) == ("ended", 1, "pending")
            assert found["lost"]
            assert "restarted" in found["error"]
            # What asked before the kill is answered by nobody any more, and the prompt was sent once.
            events = await freehold.events(lost["session"])
            assert len([one for one in events if one["kind"] == "turn.started"]) == 1
            # The same key finds the same run. Nothing begins again.
            assert (await spawn(freehold, "kept", "WRITE /workspace/never.txt words\n"))["id"] == lost["id"]
            assert len((await freehold.call("GET", RUNS))["runs"]) == 2
            assert not list(freehold.home.copies.glob("run-*/workspace"))
            for run, name in ((lost, "kept"), (done, "done")):
                merged = await freehold.call("POST", f"{RUNS}/{run['id']}/changes", how="merge")
                assert merged["outcome"] == "merged"
                assert freehold.file(f"{name}.txt").read_text().strip() == "words"
            assert not freehold.file("never.txt").exists()
            assert again.stop() == 0
