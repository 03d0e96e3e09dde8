"""Two real sessions of a whole Freehold: one is told to take what is the other's, and to use it."""

import asyncio
import json
from typing import Any

import pytest
from tests.support.running_freehold import FreeholdOptions, RunningFreehold

from freehold.computer import Computer
from freehold.computer.walls.landlock import can_separate_sessions

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
FREEHOLD = FreeholdOptions(agents=("builtin",), manifest='[agents.builtin]\nmodel = "local"\n')

TAKE = r"""
import json, os, re, signal
SECRET = re.compile(
    rb"freehold-placeholder-[\w-]{20,}|(?<=FREEHOLD_TOOLS_TOKEN=)[\w-]{40,}|(?<=Bearer )[\w-]{40,}|[\w-]{16}\.[\w-]{43}(?=@127)"
)
mine = set(SECRET.findall(open("/proc/self/environ", "rb").read()))
found, refused = set(), 0
def look(path):
    global refused
    try:
        with open(path, "rb") as file:
            found.update(SECRET.findall(file.read(1 << 22)))
    except (OSError, ValueError):
        refused += 1
def read_command(pid):
    try:
        return open(f"/proc/{pid}/cmdline", "rb").read()
    except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
        return b""
others = [pid for pid in os.listdir("/proc") if pid.isdigit() and int(pid) != os.getpid()]
agents = [int(pid) for pid in others if b"freehold.builtin" in read_command(pid)]
for pid in others:
    for name in ("environ", "cmdline", "auxv", "maps"):
        look(f"/proc/{pid}/{name}")
    try:
        with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            for line in maps:
                start, end = (int(edge, 16) for edge in line.split()[0].split("-"))
                if "rw" in line and end - start < 1 << 28:
                    memory.seek(start)
                    found.update(SECRET.findall(memory.read(end - start)))
    except OSError:
        refused += 1
for root in ("/home/agent", "/workspace", "/tmp", "/run", "/dev/shm"):
    for folder, _, names in os.walk(root):
        for name in names:
            if os.path.isfile(os.path.join(folder, name)):
                look(os.path.join(folder, name))
ended = 0
for pid in set(agents) - {int(os.environ["MINE"])}:
    try:
        os.kill(pid, signal.SIGKILL)
    except PermissionError:
        continue
    ended += 1
print(json.dumps({"mine": len(mine & found), "others": len(found - mine), "agents": len(agents), "ended": ended}))
"""
USE = """\
import json, sys, urllib.request, urllib.error
def send(url, token, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"authorization": f"Bearer {token}", "content-type": "application/json"})
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
token, key, url = open("/tmp/given").read().split()
call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
ask = {"model": "scripted", "messages": [{"role": "user", "content": "SAY hello"}]}
print(send("http://127.0.0.1:3130/mcp", token, call), send(f"{url}/chat/completions", key, ask))
"""


@pytest.mark.skipif(not can_separate_sessions(), reason="this kernel has no Landlock: freehold doctor says so")
async def test_an_agent_finds_no_token_but_its_own(freehold: RunningFreehold) -> None:
    """It looks into environments, memory, command lines and every file, and strikes at the other agent: in vain."""
    victim, thief = await freehold.open("builtin"), await freehold.open("builtin")
    freehold.file("take.py").write_text(TAKE)
    async with freehold.watch(victim) as theirs, freehold.watch(thief) as own:
        await freehold.prompt(victim, "RUN echo precious > precious.txt")
        asked = await theirs.until("approval", state="pending")
        await freehold.prompt(thief, "RUN MINE=$PPID python3 take.py > taken.json")
        await own.answer("once")
        await own.until("turn.ended")
        taken = json.loads(freehold.file("taken.json").read_text())
        assert taken == {"mine": 3, "others": 0, "agents": 2, "ended": 0}
        await freehold.call("POST", f"/v1/approvals/{asked['data']['id']}", answer="once")
        ended = await theirs.until("turn.ended")
    assert ended["data"]["stop_reason"] == "end_turn"
    assert freehold.file("precious.txt").read_text() == "precious\n"


async def spend(freehold: RunningFreehold) -> str:
    """Calls a host tool and the model with what the session was given, from outside of it."""
    async with Computer.connect(freehold.harness.home.computer_socket()) as computer:
        return (await computer.run(["/usr/bin/python3", "-c", USE], timeout=60)).text.strip()


async def requests_of(freehold: RunningFreehold) -> dict[str, int]:
    rows: list[dict[str, Any]] = (await freehold.call("GET", "/v1/usage?by=session"))["rows"]
    return {str(row["key"][0]): int(row["requests"]) for row in rows}


async def test_what_an_agent_was_given_ends_with_it(freehold: RunningFreehold) -> None:
    """While it lives it is accounted to its session, whoever uses it; when the agent is gone it opens nothing."""
    session = await freehold.open("builtin")
    async with freehold.watch(session) as watch:
        await freehold.prompt(
            session, "RUN printenv FREEHOLD_TOOLS_TOKEN FREEHOLD_MODEL_KEY FREEHOLD_MODEL_URL > /tmp/given"
        )
        await watch.answer("once")
        await watch.until("turn.ended")
        before = await requests_of(freehold)
        assert await spend(freehold) == "200 200"
        async with asyncio.timeout(30):
            while (now := await requests_of(freehold)) == before:  # it is counted just after it was answered
                continue
        assert now == {**before, session: before[session] + 1}
        await freehold.call("POST", f"/v1/sessions/{session}/rewind", turn=1, what="chat", dry_run=False)
        assert await spend(freehold) == "401 401"
        # The session goes on with an agent that has been given anew.
        await freehold.prompt(session, "SAY still here")
        await watch.until("turn.ended")
    assert "still here" in watch.text()
    assert await spend(freehold) == "401 401"
