"""How long does the orchestrator take to accept a run, until its agent works, and to pass on what the agent says?

A whole Freehold, asked over its API: each run has a computer and a copy of a folder of its own, and its agent says
the time at which it speaks. The peer is the same program on this machine, over a bare pipe, and for what is stored also
one commit to the timeline. The agent's own time, the start of Python, is in both.
"""

import asyncio
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from bench.boot import Home
from bench.harness import Figure, main
from freehold.identity.tokens import ApiTokens
from freehold.timeline import Timeline

SPAWN_AIM, STREAM_AIM = 100.0, 5.0
"""Milliseconds at the 95th percentile."""
RUNS = "/v1/slots/orchestrator/runs"
PAUSE = 0.02
FILES = 200
"""Files of the folder that each run gets a copy of."""
AGENT = """
import json, sys, time
def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n")
    sys.stdout.flush()
for line in sys.stdin:
    message = json.loads(line)
    method, result = message.get("method"), {}
    if method == "initialize":
        result = {"protocolVersion": 1, "agentCapabilities": {}}
    elif method == "session/new":
        result = {"sessionId": "s", "modes": {"currentModeId": "ask"}}
    elif method == "session/prompt":
        count, pause = json.loads(message["params"]["prompt"][0]["text"].rpartition("\\n")[2])
        for number in range(count):
            call = {"sessionUpdate": "tool_call", "toolCallId": str(number), "kind": "other", "status": "completed"}
            update = {**call, "title": "said at %d" % time.time_ns()}
            send(method="session/update", params={"sessionId": "s", "update": update})
            time.sleep(pause)
        result = {"stopReason": "end_turn"}
    if message.get("id") is not None:
        send(id=message["id"], result=result)
"""
MANIFEST = (
    '[ssh]\nenabled = false\n[slots]\norchestrator = "local"\n'
    '[agents]\ndefault = "clock"\n[agents.clock]\ncommand = "python3 /workspace/project/clock.py"\n'
)


@dataclass
class Times:
    """In milliseconds, of every run: from the request to the answer, until it works, and until its agent is heard.

    `ages`: how long ago each later event was said when the reader had it.
    """

    accepted: list[float] = field(default_factory=list)
    working: list[float] = field(default_factory=list)
    heard: list[float] = field(default_factory=list)
    ages: list[float] = field(default_factory=list)


def p95(durations: list[float]) -> float:
    """One of the values: of few, the largest."""
    return sorted(durations)[math.ceil(0.95 * len(durations)) - 1]


async def run_once(http: httpx2.AsyncClient, times: Times, count: int) -> None:
    begin = time.perf_counter()
    answer = await http.post(RUNS, json={"prompt": json.dumps([count, PAUSE]), "folder": "project"})
    answer.raise_for_status()
    times.accepted.append((time.perf_counter() - begin) * 1000)
    run, cursor, said, is_working = answer.json()["id"], 0, 0, False
    while True:
        page = (await http.get(f"{RUNS}/{run}/events", params={"after": cursor, "wait": 5})).raise_for_status().json()
        now, since = time.time_ns(), (time.perf_counter() - begin) * 1000
        if not is_working and page["run"]["state"] == "working":
            is_working = True
            times.working.append(since)
        for event in page["events"]:
            if event["kind"] == "tool":
                said += 1
                age = (now - int(event["data"]["title"].rpartition(" ")[2])) / 1e6
                times.heard.append(since) if said == 1 else times.ages.append(age)
        cursor = page["cursor"]
        if page["run"]["finished"] is not None:
            break
    if page["run"]["state"] != "done" or said != count:
        raise RuntimeError(f"the run is {page['run']['state']} after {said} events: {page['run']['error']}")


def bare_program(count: int) -> tuple[float, list[float]]:
    """Milliseconds from the start of the agent to its first event over a pipe, and how old each later one is."""
    begin = time.perf_counter()
    with subprocess.Popen([sys.executable, "-c", AGENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        prompt = {"id": 1, "method": "session/prompt", "params": {"prompt": [{"text": json.dumps([count, PAUSE])}]}}
        program.stdin.write(json.dumps(prompt).encode() + b"\n")
        program.stdin.close()
        ages, first = [], 0.0
        for line in program.stdout:
            now = time.time_ns()
            first = first or (time.perf_counter() - begin) * 1000
            message: Any = json.loads(line)
            if "params" in message:
                ages.append((now - int(message["params"]["update"]["title"].rpartition(" ")[2])) / 1e6)
    return first, ages[1:]


def one_commit(folder: Path, count: int) -> float:
    """Milliseconds of a commit to a timeline, at the 95th percentile."""
    with Timeline(folder / "peer.db") as timeline:
        times = []
        for _ in range(count):
            begin = time.perf_counter()
            timeline.append("bench.done")
            times.append((time.perf_counter() - begin) * 1000)
    return p95(times)


async def measure_runs(home: Home, quick: bool) -> Times:
    with ApiTokens(home.home.identity, owner=None) as tokens:
        _, secret = tokens.create("bench", ("read", "prompt", "orchestrator"), None)
    times, (rounds, count) = Times(), (8, 30) if quick else (30, 100)
    async with httpx2.AsyncClient(
        base_url=f"http://localhost:{home.ports[0]}",
        headers={"authorization": f"Bearer {secret}"},
        trust_env=False,
        timeout=60,
    ) as http:
        await run_once(http, Times(), 1)  # the first one reads what the others find in memory
        for _ in range(rounds):
            await run_once(http, times, count)
    return times


def measure(quick: bool) -> Iterable[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        home.home.root.mkdir(mode=0o700)
        home.home.manifest.write_text(MANIFEST)
        with home.up():
            project = home.home.workspace / "project"
            project.mkdir()
            for number in range(FILES):
                (project / f"{number}.txt").write_text("words\n" * 50)
            (project / "clock.py").write_text(AGENT)
            bare = [bare_program(30 if quick else 100) for _ in range(5)]
            commit = one_commit(Path(folder), 100)
            times = asyncio.run(measure_runs(home, quick))
    accepted, started = p95(times.accepted), statistics.median([first for first, _ in bare])
    aim = f"at most {SPAWN_AIM:g} ms"
    yield Figure("spawn, accepted, p95", accepted, "ms", "one commit", commit, aim, accepted <= SPAWN_AIM)
    yield Figure("spawn, its agent works, median", statistics.median(times.working), "ms", "accepted", accepted)
    yield Figure("spawn, first event, median", statistics.median(times.heard), "ms", "over a bare pipe", started)
    pipe = p95([age for _, ages in bare for age in ages])
    late = p95(times.ages)
    peer = ("a bare pipe and one commit", pipe + commit)
    yield Figure("stream, said to read, median", statistics.median(times.ages), "ms", *peer)
    yield Figure("stream, said to read, p95", late, "ms", *peer, f"at most {STREAM_AIM:g} ms", late <= STREAM_AIM)


if __name__ == "__main__":
    main(__doc__ or "", measure)
