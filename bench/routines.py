"""What do routines cost while they sleep, how late do they begin, and what does the journal of workflows cost?

Figures depend on what else the machine does: look at the load first.
"""

import asyncio
import base64
import json
import logging
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
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import httpx2
from tests.agents.session_harness import SessionHarness
from tests.gateway.running_gateway import running_gateway
from tests.routines.crash_driver import LineWork
from tests.routines.workflow_crash_driver import start_here
from tests.support.condition import until
from tests.support.running_freehold import RunningFreehold, run_freehold

from bench.harness import Figure, main, median_of
from freehold.computer import Computer
from freehold.gateway.rate_limit import RateLimit
from freehold.identity.tokens import ApiTokens
from freehold.routines.clock import WallClock
from freehold.routines.records import Routine, RoutineRun
from freehold.routines.routine_store import RoutineStore
from freehold.routines.run_changes import RunEnd
from freehold.routines.section import RoutineSection
from freehold.routines.service import RoutineService
from freehold.routines.shell_command import run_shell
from freehold.routines.webhook import make_secret
from freehold.routines.workflows.journal import TimelineJournal
from freehold.routines.workflows.messages import StepAsked
from freehold.routines.workflows.section import WorkflowsSection
from freehold.routines.workflows.service import WorkflowService
from freehold.routines.workflows.step_store import StepEnd
from freehold.routines.workflows.store import WorkflowOrder, WorkflowStore
from freehold.slots.events.webhook import sign
from freehold.timeline import Timeline

SLEEPING = 10_000
AT_ONCE, ALONE = 100, 3
MEMORY_AIM = 5.0
"""MB for all of them."""
START_AIM = 50.0
"""Milliseconds from due to started, at the 95th percentile."""
NOTE_START = "date +%s.%N >> started"
"""The command of a routine, whose first act is to tell when it runs."""
FLOOD_RATE = 1_000
SENDERS = 8
API_AIM = 50.0
"""Milliseconds at the 99th percentile, while so many requests a second come from one address."""
PROCESSOR_AIM = 0.1
"""Percent of one core. What is below cannot be told from the noise of the clock."""


JOURNAL_AIM = 5.0
"""Milliseconds to store that a step begins and how it ended, at the 95th percentile."""
WAITING = 1_000
ANSWERED = 50
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
                text = describe_moment(time.time() + 2.0)
                for number in range(AT_ONCE):
                    service.routines.add(f"r{number}", RoutineSection(at=text, command="true"), who="owner")
                await until(partial(work.has_begun, AT_ONCE))
                delays += work.delays
                for task in asyncio.all_tasks() - {asyncio.current_task()}:
                    task.cancel()
    return delays


async def measure_commands() -> tuple[list[float], list[float], list[float]]:
    """In a Freehold that runs, with its computer and history: milliseconds from due until a command itself runs, sorted.

    Of all at once, of the same commands when they are started in the computer by hand, and of one alone.
    """
    with tempfile.TemporaryDirectory() as folder:
        async with run_freehold(Path(folder)) as freehold:
            await until(freehold.is_connected)
            with ApiTokens(freehold.home.identity, owner=None) as tokens:
                token = tokens.create("bench", ("read", "routines", "prompt", "admin"), None)[1]
            headers = {"authorization": f"Bearer {token}"}
            alone = list[float]()
            for number in range(ALONE):
                alone += await measure_due(freehold, headers, f"alone{number}", 1)
            together = await measure_due(freehold, headers, "r", AT_ONCE)
            async with Computer.connect(freehold.home.computer_socket()) as computer:
                begin = time.time()
                by_hand = (
                    run_shell(computer, NOTE_START, told=b"", variables={}, longest=60, on_start=lambda process: None)
                    for _ in range(AT_ONCE)
                )
                await asyncio.gather(*by_hand)
            return together, read_starts(freehold, begin), sorted(alone)


async def measure_due(freehold: RunningFreehold, headers: dict[str, str], name: str, count: int) -> list[float]:
    """So many routines that are due at one moment, which is after the last of them is added."""
    begin = time.time()
    await add_routine(freehold, headers, f"{name}-first", 2**32)
    due = time.time() + 0.5 + 2 * count * (time.time() - begin)
    for number in range(count):
        await add_routine(freehold, headers, f"{name}-{number}", due)
    assert time.time() < due, "this machine is too busy to add them in time"
    started = freehold.home.workspace / "started"
    await until(lambda: started.exists() and len(started.read_text().splitlines()) == count)
    return read_starts(freehold, due)


async def add_routine(freehold: RunningFreehold, headers: dict[str, str], name: str, due: float) -> None:
    spec = {"at": describe_moment(due), "command": NOTE_START}
    added = await freehold.http.post("/v1/routines", json={"name": name, "routine": spec}, headers=headers)
    added.raise_for_status()


def read_starts(freehold: RunningFreehold, begin: float) -> list[float]:
    """What the commands have told, in milliseconds after `begin`, sorted. It is removed."""
    started = freehold.home.workspace / "started"
    delays = sorted((float(line) - begin) * 1000 for line in started.read_text().splitlines())
    started.unlink()
    return delays


def describe_moment(moment: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment)) + f".{int(moment % 1 * 1e6):06}+00:00"


def tell_starts(quick: bool) -> Iterator[Figure]:
    """First what the service needs, whose aim this is; then the whole way, which is mostly the start of the commands."""
    delays = sorted(asyncio.run(measure_starts(1 if quick else 5)))
    late = delays[int(len(delays) * 0.95)]
    yield Figure(
        f"due to handed to its work, which only notes the time, p95 of {AT_ONCE} at once",
        late,
        "ms",
        "the median:",
        delays[len(delays) // 2],
        f"≤ {START_AIM:g} ms",
        late <= START_AIM,
    )
    together, by_hand, alone = asyncio.run(measure_commands())
    yield Figure(
        f"due to a command that runs in the computer, p95 of {AT_ONCE} at once",
        together[int(len(together) * 0.95)],
        "ms",
        "the same commands, by hand:",
        by_hand[int(len(by_hand) * 0.95)],
    )
    yield Figure("due to a command that runs in the computer, median of one alone", alone[len(alone) // 2], "ms")


FloodKind = Literal["limited", "forged", "signed"]


@dataclass(frozen=True)
class Flood:
    """How long the owner's calls took, in milliseconds, and what the requests beside them were answered, by status."""

    alone: list[float]
    beside: list[float]
    rate: float
    statuses: dict[str, int]


async def serve(home: Path, is_lifted: bool) -> None:
    """The part of the gateway: it says its port, a token and the secret of a hook, and serves until it is killed.

    `is_lifted`: without the rate limit for callers without a credential, so that all requests reach the signature check.
    """
    async with running_gateway(home) as gateway:
        if is_lifted:
            gateway.app._anonymous_limit = RateLimit(rate=1e9, burst=1e9)
        token = gateway.token("routines", "prompt", "admin")
        hour = time.gmtime().tm_hour
        # Its runs are stored and wait: there is no computer here in which they could begin.
        hours = f"{(hour + 11) % 24:02}:00-{(hour + 12) % 24:02}:00"
        spec = {"webhook": True, "prompt": "x", "most_per_hour": 3600, "hours": hours, "zone": "UTC"}
        added = await gateway.http.post("/v1/routines", json={"name": "hook", "routine": spec}, headers=token)
        added.raise_for_status()
        made = (await gateway.http.post("/v1/routines/hook/webhook", json={}, headers=token)).json()
        print(json.dumps({"port": gateway.port, "token": token, "secret": made["secret"]}), flush=True)
        await asyncio.Event().wait()


async def flood(port: int, secret: str, seconds: float) -> None:
    """The part of the sender: requests over open connections, each with a message of its own, signed with this secret."""
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


def measure_flood(seconds: float, kind: FloodKind) -> Flood:
    """The owner's calls without and beside the flood."""
    me, where = [sys.executable, "-m", "bench.routines"], Path(__file__).parents[1]
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(
            [*me, "serve", folder, "as-shipped" if kind == "limited" else "lifted"],
            stdout=subprocess.PIPE,
            text=True,
            cwd=where,
        ) as server,
    ):
        try:
            assert server.stdout is not None
            told = json.loads(server.stdout.readline())
            alone = call_api(told["port"], told["token"], seconds)
            secret = make_secret() if kind == "forged" else told["secret"]
            command = [*me, "flood", str(told["port"]), secret, str(seconds + 1)]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=where) as sender:
                time.sleep(1.0)
                busy = call_api(told["port"], told["token"], seconds)
                sent = json.loads(sender.communicate()[0])
        finally:
            server.kill()
    return Flood(alone, busy, sent["rate"], sent["statuses"])


def tell_floods(seconds: float) -> Iterator[Figure]:
    """As shipped, almost all of a flood is refused before any signature is looked at. So it is measured a second time
    without that limit, once with signatures that are wrong and once with right ones, each of which asks for a run."""
    words: dict[FloodKind, str] = {
        "limited": "with the rate limits as shipped",
        "forged": "without the rate limit, all to the signature check, which refuses them",
        "signed": "without the rate limit, all to the signature check, which takes them: 202 is a run that is stored",
    }
    for kind, what in words.items():
        found = measure_flood(seconds, kind)
        counts = ", ".join(f"{status}: {count:,}" for status, count in sorted(found.statuses.items()))
        p99 = found.beside[int(len(found.beside) * 0.99)]
        yield Figure(
            f"API p99 beside {found.rate:.0f} webhook requests a second, {what} ({counts})",
            p99,
            "ms",
            "without them:",
            found.alone[int(len(found.alone) * 0.99)],
            f"< {API_AIM:g} ms at {FLOOD_RATE:,} a second",
            p99 < API_AIM and found.rate >= 0.95 * FLOOD_RATE,
        )


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


async def recover(home: Path) -> tuple[float, float]:
    """Seconds until the first of those that get an answer has ended, and until all of them have."""
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # it tells of each program that ends while it is killed
    async with asyncio.TaskGroup() as group:
        begin = time.perf_counter()
        service = await open_workflows(group, home)
        assert service.store.count_states() == {"waiting": WAITING}
        answered = service.store.list_workflows(limit=ANSWERED)
        for one in answered:
            service.store.steps.answer(one.id, "2", "yes", who="owner")

        def count_ended() -> int:
            return WAITING - sum(service.store.count_states().values())

        await until(count_ended)
        first = time.perf_counter() - begin
        await until(lambda: count_ended() == ANSWERED)
        spent = time.perf_counter() - begin
        assert service.store.count_states() == {"waiting": WAITING - ANSWERED}
        for one in answered:
            ended = service.store.get(one.id)
            assert (ended.state, ended.result) == ("done", "yes"), ended
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
    return first, spent


def measure_recovery() -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "freehold.toml").write_text("")
        command = [sys.executable, "-m", "bench.routines", "wait", folder]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1]) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "waiting\n"
            child.kill()
        return asyncio.run(recover(home))


def start_python() -> None:
    subprocess.run([sys.executable, "-I", "-c", "pass"], check=True)


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
    first, spent = measure_recovery()
    yield Figure(
        f"recovery of {WAITING:,} waiting workflows after kill -9, to the end of the first of {ANSWERED} that go on",
        first,
        "s",
        aim=f"≤ {RECOVERY_AIM:g} s",
        met=first <= RECOVERY_AIM,
    )
    yield Figure(
        f"the same, to the end of all {ANSWERED}, {WorkflowsSection().at_once} at a time",
        spent,
        "s",
        f"{ANSWERED} bare starts of Python, one by one:",
        ANSWERED * median_of(start_python, 5),
    )


def measure(quick: bool) -> Iterator[Figure]:
    yield from measure_workflows(quick)
    seconds = 2.0 if quick else 30.0
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
    yield from tell_starts(quick)
    yield from tell_floods(2.0 if quick else 20.0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["sleep"]:
        asyncio.run(sleep_and_report(Path(sys.argv[2]), float(sys.argv[3])))
    elif sys.argv[1:2] == ["wait"]:
        asyncio.run(wait_forever(Path(sys.argv[2])))
    elif sys.argv[1:2] == ["serve"]:
        asyncio.run(serve(Path(sys.argv[2]), sys.argv[3] == "lifted"))
    elif sys.argv[1:2] == ["flood"]:
        asyncio.run(flood(int(sys.argv[2]), sys.argv[3], float(sys.argv[4])))
    else:
        main(__doc__ or "", measure)
