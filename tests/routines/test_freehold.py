"""Routines of a whole Freehold: real keeper, gateway, computer and history."""

import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from tests.support.condition import until
from tests.support.running_freehold import FreeholdOptions, RunningFreehold, run_freehold

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
EXAMPLE = Path(__file__).parents[2] / "examples/workflows/file_inbox.py"
MANIFEST = """
[history]
quiet = "200ms"

[slots]
events = "local"

[routines.file]
files = ["inbox/*.txt"]
command = "cat >> told.jsonl; echo filed >> inbox/filed.txt"
overlap = "queue"

[routines.slow]
files = ["notes/*"]
command = "echo x >> notes/log; until [ -e go-on ]; do sleep 0.1; done"
overlap = "queue"

[routines.sort]
files = ["post/*"]
workflow = "file_inbox.py"
overlap = "queue"

[routines.event]
event = "org.example.*"
command = "cat > event.json"
overlap = "queue"

[routines.change]
webhook = true
command = "echo after > changed.txt"
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def freehold(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningFreehold]:
    async with run_freehold(
        tmp_path_factory.mktemp("home"), FreeholdOptions(agents=("builtin",), manifest=MANIFEST)
    ) as running:
        await until(running.is_connected)
        yield running


async def runs_of(freehold: RunningFreehold, name: str) -> list[Any]:
    """The oldest first."""
    return list(reversed((await freehold.call("GET", f"/v1/routines/{name}/runs"))["runs"]))


async def send(freehold: RunningFreehold, address: str, /, **body: Any) -> None:
    answer = await freehold.http.post(address, json=body)
    assert answer.status_code in (200, 201), answer.text


async def write(freehold: RunningFreehold, path: str, text: str) -> None:
    """Written from inside: what programs there change must be theirs."""
    answer = await freehold.http.put("/v1/files/content", params={"path": f"/workspace/{path}"}, content=text.encode())
    assert answer.status_code == 200, answer.text


async def until_ended(freehold: RunningFreehold, name: str, count: int = 1) -> Any:
    """The newest run with what it was told, when there are so many and all have ended."""

    async def ended() -> Any:
        found = await runs_of(freehold, name)
        return found[-1]["id"] if len(found) >= count and all(run["finished"] for run in found) else None

    return await freehold.call("GET", f"/v1/routines/{name}/runs/{await until(ended)}")


async def test_a_file_that_arrives_begins_a_run_and_what_the_run_writes_does_not(freehold: RunningFreehold) -> None:
    await send(freehold, "/v1/files/folder", path="/workspace/inbox")
    freehold.file("inbox/first.txt").write_text("x")
    freehold.file("inbox/other.bin").write_text("x")
    run = await until_ended(freehold, "file")
    assert (run["state"], run["data"]["paths"]) == ("done", ["inbox/first.txt"])
    told = json.loads(freehold.file("told.jsonl").read_text())
    assert told["paths"] == ["inbox/first.txt"]
    # It has written inbox/filed.txt itself. Another file is seen; that one was not.
    freehold.file("inbox/second.txt").write_text("x")
    run = await until_ended(freehold, "file", 2)
    assert run["data"]["paths"] == ["inbox/second.txt"]


async def test_a_command_that_history_records_in_the_middle_does_not_begin_itself(freehold: RunningFreehold) -> None:
    async def is_recorded() -> bool:
        entries = (await freehold.call("GET", "/v1/history?limit=5"))["entries"]
        return any((one["kind"], one["why"]) == ("quiet", "routine slow") for one in entries)

    await send(freehold, "/v1/files/folder", path="/workspace/notes")
    await write(freehold, "notes/first", "x")
    await until(is_recorded)
    await write(freehold, "go-on", "")
    await until_ended(freehold, "slow")
    await write(freehold, "notes/second", "x")
    await until_ended(freehold, "slow", 2)
    told = [
        (await freehold.call("GET", f"/v1/routines/slow/runs/{run['id']}")) for run in await runs_of(freehold, "slow")
    ]
    assert [run["data"]["paths"] for run in told] == [["notes/first"], ["notes/second"]]


async def test_a_workflow_that_moves_what_arrived_does_not_begin_itself(freehold: RunningFreehold) -> None:
    """The example that is shipped: it asks an agent about each file and moves it out of the folder that is watched."""
    await write(freehold, EXAMPLE.name, EXAMPLE.read_text())
    await send(freehold, "/v1/files/folder", path="/workspace/post")
    for count, name in enumerate(("a.txt", "b.txt"), 1):
        await write(freehold, f"post/{name}", "x")
        run = await until_ended(freehold, "sort", count)
        assert (run["state"], run["data"]["paths"]) == ("done", [f"post/{name}"]), run
        assert not freehold.file(f"post/{name}").exists()
    assert len(await runs_of(freehold, "sort")) == 2


async def test_an_event_of_the_slot_begins_a_run_once(freehold: RunningFreehold) -> None:
    last = 0

    # The routine looks from the moment on at which it was made.
    async def published() -> bool:
        nonlocal last
        last += 1
        await send(freehold, "/v1/slots/events", type="org.example.order", data={"number": last})
        return bool(await runs_of(freehold, "event"))

    async def find_last() -> Any:
        run = await until_ended(freehold, "event")
        return run if run["data"]["data"]["number"] == last else None

    await until(published)
    # When the one of the last event has ended, none follows that would change files in the next test.
    run = await until(find_last)
    assert (run["state"], run["data"]["type"]) == ("done", "org.example.order")
    assert json.loads(freehold.file("event.json").read_text())["data"] == {"number": last}
    assert len(await runs_of(freehold, "event")) <= last


async def test_a_workflow_goes_on_with_an_event_of_the_slot(freehold: RunningFreehold) -> None:
    text = (
        "from freehold_workflow import event\n\nasync def main(data):\n    return (await event('org.shop.*'))['data']\n"
    )
    await write(freehold, "wait.py", text)
    answer = await freehold.http.post("/v1/workflows", json={"file": "wait.py"})
    address = f"/v1/workflows/{answer.json()['id']}"

    async def is_in(state: str) -> bool:
        return bool((await freehold.call("GET", address))["state"] == state)

    await until(lambda: is_in("waiting"))
    await send(freehold, "/v1/slots/events", type="org.shop.paid", data={"order": 7})
    await until(lambda: is_in("done"))
    assert (await freehold.call("GET", address))["result"] == {"order": 7}


async def test_what_a_run_changed_is_one_entry_that_can_be_undone(freehold: RunningFreehold) -> None:
    changed = freehold.file("changed.txt")
    await write(freehold, "changed.txt", "before\n")
    await send(freehold, "/v1/routines/change/run")
    run = await until_ended(freehold, "change")
    assert (run["state"], changed.read_text()) == ("done", "after\n")
    entry = (await freehold.call("GET", "/v1/history?limit=1"))["entries"][0]
    assert (entry["kind"], entry["why"], entry["changed"]) == ("command", "routine change", 1)
    await send(freehold, "/v1/history/undo")
    assert changed.read_text() == "before\n"


async def test_a_gateway_that_is_killed_begins_what_became_due_meanwhile(freehold: RunningFreehold) -> None:
    """The command line adds the run while no gateway is there."""
    added = {"name": "later", "routine": {"webhook": True, "command": "echo ran >> later.txt"}}
    await send(freehold, "/v1/routines", **added)
    os.kill(freehold.harness.pid_of("gateway"), signal.SIGKILL)
    freehold.harness.run("routines", "run", "later", check=True)

    async def ended() -> Any:
        try:
            return (await runs_of(freehold, "later"))[-1]["finished"]
        except httpx2.HTTPError:  # the next gateway starts
            return None

    await until(ended)
    assert freehold.file("later.txt").read_text() == "ran\n"
