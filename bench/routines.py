"""What do routines cost while they sleep, how late do they begin, and what does the journal of workflows cost?

Figures depend on what else the machine does: look at the load first.
"""

import asyncio
import base64
import json
import os
import re
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
from tests.agents.session_harness import SessionHarness
from tests.gateway.running_gateway import running_gateway
from tests.routines.crash_driver import LineWork
from tests.routines.workflow_crash_driver import start_here
from tests.support.condition import until

from bench.harness import Figure, main
from freehold.computer import Computer
from freehold.routines.clock import WallClock
from freehold.routines.records import Routine, RoutineRun
from freehold.routines.routine_store import RoutineStore
from freehold.routines.run_store import RunEnd
from freehold.routines.section import RoutineSection
from freehold.routines.service import RoutineService
from freehold.routines.workflows.journal import TimelineJournal
from freehold.routines.workflows.messages import StepAsked
from freehold.routines.workflows.service import WorkflowService
from freehold.routines.workflows.step_store import StepEnd
from freehold.routines.workflows.store import WorkflowOrder, WorkflowStore
from freehold.slots.events.webhook import sign
from freehold.timeline import Timeline

SLEEPING = 10_000
AT_ONCE = 100
MEMORY_AIM = 5.0
"""MB for all of them."""
START_AIM = 50.0
"""Milliseconds from due to started, at the 95th percentile."""
FLOOD_RATE = 1_000
SENDERS = 8
API_AIM = 50.0
"""Milliseconds at the 99th percentile, while so many requests a second come from one address."""
PROCESSOR_AIM = 0.1
"""Percent of one core. What is below cannot be told from the noise of the clock."""


JOURNAL_AIM = 5.0
"""Milliseconds to store that a step begins and how it ended, at the 95th percentile."""
WAITING = 1_000
RECOVERY_AIM = 2.0
"""Seconds from the start of the service until they wait again and one of them has gone on to its end."""
NO_RETRY = {"again": False, "retries": 0, "delay": 10.0}
WAITING_FILE = """
from freehold_workflow import ask, step

async def main(data):
    await step(str, 1)
    return await ask("Go on?")
"""


class TimedWork(LineWork):
    """Notes when each run began."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.delays: list[float] = []

    def has_begun(self, count: int) -> bool:
        return len(self.delays) >= count

    async def begin(self, routine: Routine, run: RoutineRun) -> RunEnd | None:
        self.delays.append((time.time() - run.due) * 1000)
        return RunEnd("done")


async def open_service(group: asyncio.TaskGroup, home: Path) -> tuple[RoutineService, TimedWork]:
    computer: Computer = None  # type: ignore[assignment] # no work of this benchmark needs one
    sessions = SessionHarness(computer, home, 600.0)
    await sessions.start(group)
    service = RoutineService(sessions.sessions, {})
    work = TimedWork(home / "lines.txt")
    service._works["command"] = work
    group.create_task(service.run())
    await service.ready.wait()
    return service, work


def fill(home: Path, count: int) -> None:
    """Routines of every kind of schedule, none of which is due soon."""
    (home / "freehold.toml").write_text("")
    specs = (
        RoutineSection(cron="0 7 1 1 *", zone="Europe/Berlin", command="true"),
        RoutineSection(every=366 * 86400, command="true"),
        RoutineSection(at="2999-01-01T00:00", command="true"),
    )
    with Timeline(home / "timeline.db") as timeline:
        store = RoutineStore(timeline, WallClock())
        store.prepare()
        store.adopt_manifest({f"r{number:05}": specs[number % len(specs)] for number in range(count)})
        with timeline.transaction() as tx:  # they stay when the service starts without a manifest
            tx.execute("UPDATE routines_routine SET source = 'owner'")


async def sleep_and_report(home: Path, seconds: float) -> None:
    """The part of the child: its memory and its processor time while nothing is due."""
    async with asyncio.TaskGroup() as group:
        await open_service(group, home)
        await asyncio.sleep(1.0)
        before = resource.getrusage(resource.RUSAGE_SELF)
        await asyncio.sleep(seconds)
        after = resource.getrusage(resource.RUSAGE_SELF)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        print(json.dumps({"memory": pages * os.sysconf("SC_PAGE_SIZE") / 1e6, "processor": 100 * used / seconds}))
        sys.stdout.flush()
        os._exit(0)


def measure_sleep(count: int, seconds: float) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder), count)
        command = [sys.executable, "-m", "bench.routines", "sleep", folder, str(seconds)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1])
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


async def measure_starts(rounds: int) -> list[float]:
    """All of them are due at the same moment."""
    delays: list[float] = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            fill(home, 0)
            async with asyncio.TaskGroup() as group:
                service, work = await open_service(group, home)
                moment = time.time() + 2.0
                text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment)) + f".{int(moment % 1 * 1e6):06}+00:00"
                for number in range(AT_ONCE):
                    service.routines.add(f"r{number}", RoutineSection(at=text, command="true"), who="owner")
                await until(partial(work.has_begun, AT_ONCE))
                delays += work.delays
                for task in asyncio.all_tasks() - {asyncio.current_task()}:
                    task.cancel()
    return delays


async def serve(home: Path) -> None:
    """The part of the gateway: it says its port, a token and the secret of a hook, and serves until it is killed."""
    async with running_gateway(home) as gateway:
        token = gateway.token("routines", "prompt", "admin")
        body = {"name": "hook", "routine": {"webhook": True, "prompt": "x", "overlap": "queue", "most_per_hour": 3600}}
        await gateway.http.post("/v1/routines", json=body, headers=token)
        made = (await gateway.http.post("/v1/routines/hook/webhook", json={}, headers=token)).json()
        print(json.dumps({"port": gateway.port, "token": token, "secret": made["secret"]}), flush=True)
        await asyncio.Event().wait()


async def flood(port: int, secret: str, seconds: float) -> None:
    """The part of the sender: signed requests over open connections, each with a message of its own."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    statuses: Counter[str] = Counter()
    begin = time.monotonic()

    async def send(sender: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        number = 0
        while (now := time.monotonic() - begin) < seconds:
            number += 1
            id, at, body = f"m{sender}-{number}", int(time.time()), b'{"n": 1}'
            head = (
                f"POST /v1/hooks/hook HTTP/1.1\r\nhost: localhost:{port}\r\ncontent-length: {len(body)}\r\n"
                f"webhook-id: {id}\r\nwebhook-timestamp: {at}\r\nwebhook-signature: {sign(key, id, at, body)}\r\n\r\n"
            )
            writer.write(head.encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            length = int(re.search(rb"content-length: (\d+)", answer)[1])  # type: ignore[index]
            await reader.readexactly(length)
            statuses[answer.split(b" ", 2)[1].decode()] += 1
            await asyncio.sleep(max(0.0, number * SENDERS / FLOOD_RATE - now))
        writer.close()

    await asyncio.gather(*(send(sender) for sender in range(SENDERS)))
    print(json.dumps({"rate": sum(statuses.values()) / seconds, "statuses": statuses}), flush=True)


def call_api(port: int, token: dict[str, str], seconds: float) -> list[float]:
    """How long the owner's calls take meanwhile, in milliseconds."""
    found = []
    with httpx2.Client(base_url=f"http://localhost:{port}", headers=token, trust_env=False) as http:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            begin = time.perf_counter()
            http.get("/v1/routines/hook").raise_for_status()
            found.append((time.perf_counter() - begin) * 1000)
            time.sleep(0.01)
    return sorted(found)


def measure_flood(seconds: float) -> tuple[list[float], list[float], dict[str, Any]]:
    """Calls without and with the flood, and how many requests were sent."""
    me, where = [sys.executable, "-m", "bench.routines"], Path(__file__).parents[1]
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen([*me, "serve", folder], stdout=subprocess.PIPE, text=True, cwd=where) as server,
    ):
        try:
            assert server.stdout is not None
            told = json.loads(server.stdout.readline())
            alone = call_api(told["port"], told["token"], seconds)
            command = [*me, "flood", str(told["port"]), told["secret"], str(seconds + 1)]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=where) as sender:
                time.sleep(1.0)
                busy = call_api(told["port"], told["token"], seconds)
                sent = json.loads(sender.communicate()[0])
        finally:
            server.kill()
    return alone, busy, sent


def measure_journal(steps: int) -> tuple[list[float], list[float]]:
    """Milliseconds of each step's two transactions, and of a bare commit of SQLite that writes as much, sorted."""
    journal, bare = list[float](), list[float]()
    with tempfile.TemporaryDirectory() as folder, Timeline(Path(folder) / "timeline.db") as timeline:
        store = WorkflowStore(TimelineJournal(timeline), WallClock())
        store.journal.prepare()
        id = store.add(WorkflowOrder("w.py", {}), who="owner").id
        store.claim(id, "text", "here")
        peer = sqlite3.connect(Path(folder) / "peer.db", isolation_level=None)
        peer.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE step (result TEXT)")
        for number in range(1, steps + 1):
            begin = time.perf_counter()
            asked = StepAsked(str(number), "step", "fetch", {"function": "fetch", "arguments": [number]})
            step, _ = store.steps.begin_step(id, asked, steps, "here")
            store.steps.end_step(step, StepEnd({"number": number}))
            journal.append((time.perf_counter() - begin) * 1000)
            begin = time.perf_counter()
            peer.execute("INSERT INTO step VALUES (?)", (json.dumps({"number": number}),))
            bare.append((time.perf_counter() - begin) * 1000)
        peer.close()
    return sorted(journal), sorted(bare)


async def wait_forever(home: Path) -> None:
    """The part of the child that is killed: many workflows that have come to a question."""
    async with asyncio.TaskGroup() as group:
        service = await open_workflows(group, home)
        for _ in range(WAITING):
            made = service.store.add(WorkflowOrder("w.py", {}), who="owner")
            service.store.claim(made.id, WAITING_FILE, "here")
            function = StepAsked("1", "step", "str", {"function": "str", "arguments": [1], **NO_RETRY})
            step, _ = service.store.steps.begin_step(made.id, function, 10, "here")
            service.store.steps.end_step(step, StepEnd("1"))
            service.store.steps.begin_step(
                made.id, StepAsked("2", "ask", "Go on?", {"question": "Go on?", "choices": []}), 10, "here"
            )
            service.store.suspend(made.id, ["2"])
        print("waiting", flush=True)
        await asyncio.Event().wait()


async def open_workflows(group: asyncio.TaskGroup, home: Path) -> WorkflowService:
    computer: Computer = None  # type: ignore[assignment] # the files of this benchmark run here
    sessions = SessionHarness(computer, home, 600.0)
    await sessions.start(group)

    async def read_source(_file: str) -> str:
        return WAITING_FILE

    service = WorkflowService(sessions.sessions, start=start_here, read_source=read_source)
    group.create_task(service.run())
    await service.ready.wait()
    return service


async def recover(home: Path) -> float:
    async with asyncio.TaskGroup() as group:
        begin = time.perf_counter()
        service = await open_workflows(group, home)
        assert service.store.count_states() == {"waiting": WAITING}
        (first,) = service.store.list_workflows(limit=1)
        service.store.steps.answer(first.id, "2", "yes", who="owner")
        await until(lambda: service.store.get(first.id).state == "done")
        spent = time.perf_counter() - begin
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
    return spent


def measure_recovery() -> float:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "freehold.toml").write_text("")
        command = [sys.executable, "-m", "bench.routines", "wait", folder]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1]) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "waiting\n"
            child.kill()
        return asyncio.run(recover(home))


def measure_workflows(quick: bool) -> Iterator[Figure]:
    journal, bare = measure_journal(300 if quick else 2000)
    step = journal[int(len(journal) * 0.95)]
    yield Figure(
        "journal of a workflow's step, p95",
        step,
        "ms",
        "a bare commit of SQLite:",
        bare[int(len(bare) * 0.95)],
        f"≤ {JOURNAL_AIM:g} ms",
        step <= JOURNAL_AIM,
    )
    spent = measure_recovery()
    yield Figure(
        f"recovery of {WAITING:,} waiting workflows after kill -9",
        spent,
        "s",
        aim=f"≤ {RECOVERY_AIM:g} s",
        met=spent <= RECOVERY_AIM,
    )


def measure(quick: bool) -> Iterator[Figure]:
    yield from measure_workflows(quick)
    seconds = 5.0 if quick else 30.0
    empty, full = measure_sleep(0, seconds), measure_sleep(SLEEPING, seconds)
    memory = full["memory"] - empty["memory"]
    yield Figure(
        f"memory of {SLEEPING:,} routines that sleep",
        memory,
        "MB",
        "the process without any:",
        empty["memory"],
        f"< {MEMORY_AIM:g} MB",
        memory < MEMORY_AIM,
    )
    processor = full["processor"] - empty["processor"]
    yield Figure(
        f"processor of {SLEEPING:,} routines that sleep",
        processor,
        "%",
        "the process without any:",
        empty["processor"],
        f"< {PROCESSOR_AIM:g} % of a core",
        processor < PROCESSOR_AIM,
    )
    delays = sorted(asyncio.run(measure_starts(1 if quick else 5)))
    late = delays[int(len(delays) * 0.95)]
    yield Figure(
        f"due to started, p95 of {AT_ONCE} at once",
        late,
        "ms",
        "the median:",
        delays[len(delays) // 2],
        f"≤ {START_AIM:g} ms",
        late <= START_AIM,
    )
    alone, busy, sent = measure_flood(4.0 if quick else 20.0)
    p99 = busy[int(len(busy) * 0.99)]
    yield Figure(
        f"API p99 beside {sent['rate']:.0f} signed requests a second",
        p99,
        "ms",
        "without them:",
        alone[int(len(alone) * 0.99)],
        f"< {API_AIM:g} ms",
        p99 < API_AIM,
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["sleep"]:
        asyncio.run(sleep_and_report(Path(sys.argv[2]), float(sys.argv[3])))
    elif sys.argv[1:2] == ["wait"]:
        asyncio.run(wait_forever(Path(sys.argv[2])))
    elif sys.argv[1:2] == ["serve"]:
        asyncio.run(serve(Path(sys.argv[2])))
    elif sys.argv[1:2] == ["flood"]:
        asyncio.run(flood(int(sys.argv[2]), sys.argv[3], float(sys.argv[4])))
    else:
        main(__doc__ or "", measure)
