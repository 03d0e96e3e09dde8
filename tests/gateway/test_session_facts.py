"""What the host knows about what an agent has read, and for whom the agent of a run works."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.agents.tools.test_bead_tools import no_secret
from tests.agents.tools.test_tool_framing import ask_nobody
from tests.egress.framing_fuzz import MemoryStream

from freehold.agents.sessions.store import SessionStore
from freehold.agents.tools.call_log import HostCallLog
from freehold.agents.tools.memory import SessionFacts, make_memory_tools
from freehold.agents.tools.server import HostToolServer
from freehold.agents.tools.tool import HostTool, Json, ToolCaller
from freehold.errors import FreeholdError
from freehold.gateway.host_tools import read_facts
from freehold.home import Home
from freehold.manifest.sections.slots import SlotSection
from freehold.slots import SlotCaller, SlotError
from freehold.slots.host import SlotPlace, make_slot
from freehold.slots.memory.contract import ListMemories, MemoryOrigin, StoreMemory
from freehold.slots.pods.contract import GetDocument, GrantAccess, ListGrants, PutDocument
from freehold.timeline import Timeline

OWNER = SlotCaller("owner")


@pytest.fixture
def timeline(tmp_path: Path) -> Iterator[Timeline]:
    with Timeline(tmp_path / "timeline.db") as found:
        yield found


@pytest.fixture
def store(timeline: Timeline) -> SessionStore:
    store = SessionStore(timeline)
    store.prepare()
    return store


def begin_turn(store: SessionStore, session: str, key: str) -> int:
    """The next turn runs, and the one before has ended."""
    with store.timeline.transaction() as tx:
        tx.execute("UPDATE agents_turn SET state = 'ended' WHERE session = ?", (session,))
    words = {"text": "Do it", "files": [], "images": []}
    turn, _ = store.turns.add(session, key, words, first=False, waits=False, who="owner")
    store.turns.begin(session, turn, None, who="owner")
    return turn.turn


async def answer(_caller: ToolCaller, _given: Json) -> str:
    return "words"


SHOW = HostTool("show", "Shows what others wrote.", {}, (), answer, permission="beads")
ASK = HostTool("ask", "Asks.", {}, (), answer, permission="ask", reads=False)


async def call(server: HostToolServer, session: str, name: str, **given: object) -> Json:
    """As the agent of a session calls a tool."""
    wanted = {"name": name, "arguments": given}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": wanted}).encode()
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.token_for(session)}\r\nConnection: close\r\n"
    )
    stream = MemoryStream(head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    await server.handle(stream)
    found: Json = json.loads(stream.written.partition(b"\r\n\r\n")[2])
    return found


async def test_the_origin_of_a_memory_is_what_host_tools_have_answered_whatever_the_agent_tells(
    store: SessionStore, timeline: Timeline, tmp_path: Path
) -> None:
    session = store.create("claude", None, None, who="owner").id

    async def find_turn(one: str) -> int | None:
        return store.turns.find_running(one)

    log = HostCallLog(find_turn)

    async def find_facts(one: str) -> SessionFacts:
        return read_facts(store, log, one)

    slot = make_slot("memory", SlotSection(mode="local"), SlotPlace(Home(tmp_path, tmp_path), timeline, no_secret, {}))
    await slot.connect()
    server = HostToolServer([SHOW, ASK, *make_memory_tools(slot, find_facts)], ask_nobody, calls=log)
    use = partial(call, server, session)

    async def remember(text: str) -> str:
        assert "Stored as" in str(await use("remember", text=text))
        newest = max((await slot.call(ListMemories(), OWNER)).memories, key=lambda one: one.created)
        return newest.origin.kind

    try:
        begin_turn(store, session, "k1")
        assert await remember("one") == "agent"
        # The agent tells of this call, as of any. The host knows that the answer was the owner's.
        await use("ask")
        store.append(
            session, 1, [("tool", {"id": "1", "kind": "other", "status": "pending", "title": "mcp__freehold__ask"})]
        )
        assert await remember("two") == "agent"
        # It tells nothing of this one.
        await use("show")
        assert await remember("three") == "tool"
        begin_turn(store, session, "k2")
        assert await remember("four") == "agent"
        # A call that the host did not see is what the agent calls it.
        store.append(session, 2, [("tool", {"id": "2", "kind": "other", "status": "pending", "title": "show"})])
        assert await remember("five") == "tool"
        await slot.call(StoreMemory("Zebras obey the page", origin=MemoryOrigin("web", "x", 1, None)), OWNER)
        begin_turn(store, session, "k3")
        assert "Zebras" in str(await use("recall", question="zebras"))
        assert await remember("six") == "web"
        # What a page said stays in the conversation.
        begin_turn(store, session, "k4")
        server.revoke(session)
        assert await remember("seven") == "web"
    finally:
        await slot.close()


async def test_a_page_that_the_agent_told_of_counts_for_the_whole_conversation(store: SessionStore) -> None:
    session, other = (store.create("claude", None, None, who="owner").id for _ in range(2))

    async def find_turn(one: str) -> int | None:
        return store.turns.find_running(one)

    for one in (session, other):
        begin_turn(store, one, "k1")
    store.append(session, 1, [("tool", {"id": "1", "kind": "fetch", "status": "pending", "title": "Fetch"})])
    begin_turn(store, session, "k2")
    found = [read_facts(store, HostCallLog(find_turn), one) for one in (session, other)]
    assert [(one.turn, one.read) for one in found] == [(2, "web"), (1, "agent")]


async def test_a_run_uses_only_the_tools_that_it_was_begun_with() -> None:
    allowed = {"run": frozenset({"beads"}), "silent": frozenset[str]()}
    server = HostToolServer([SHOW, ASK], ask_nobody, permissions_of=allowed.get)
    for session, name, is_allowed in (
        ("main", "show", True),
        ("main", "ask", True),
        ("run", "show", True),
        ("run", "ask", False),
        ("silent", "show", False),
        ("silent", "ask", False),
    ):
        found = await call(server, session, name)
        assert ("result" in found) == is_allowed, (session, name, found)
        if not is_allowed:
            assert "begun without the permission" in found["error"]["message"]


async def test_the_agent_of_a_run_reaches_no_more_than_the_agents_for_which_it_works(
    store: SessionStore, timeline: Timeline, tmp_path: Path
) -> None:
    place = SlotPlace(Home(tmp_path, tmp_path), timeline, no_secret, {})
    main = store.create("claude", None, None, who="owner").id
    run = store.create("codex", None, None, who="owner", parent=main, of_run=True).id
    below = store.create("gemini", None, None, who="owner", parent=run, of_run=True).id
    fork = store.create("codex", None, None, who="owner", parent=run).id
    far = store.create("codex", None, None, who="owner", parent="token:x/other", of_run=True).id

    async def no_turn(_session: str) -> None:
        return None

    facts = {one: read_facts(store, HostCallLog(no_turn), one) for one in (main, run, below, fork, far)}
    assert [facts[one].above for one in (main, run, below, fork, far)] == [(), ("claude",), ("codex", "claude"), (), ()]
    callers = {one: SlotCaller(f"session:{one}", found.agent, found.above) for one, found in facts.items()}

    pods = make_slot("pods", SlotSection(mode="local"), place)
    memory = make_slot("memory", SlotSection(mode="local"), place)
    for slot in (pods, memory):
        await slot.connect()
    try:
        for path in ("both/a", "both/sub/a", "codex/a", "claude/a"):
            await pods.call(PutDocument(path, "text/plain", "x"), OWNER)
        for agent, folder, mode in (
            ("codex", "", "write"),
            ("claude", "both/sub/", "write"),
            ("claude", "both/", "read"),
        ):
            await pods.call(GrantAccess(agent, folder, mode), OWNER)  # type: ignore[arg-type]

        async def may(session: str, request: object) -> bool:
            try:
                await pods.call(request, callers[session])  # type: ignore[arg-type]
            except SlotError as error:
                return error.problem != "denied"
            return True

        write = PutDocument("both/sub/a", "text/plain", "y"), PutDocument("both/a", "text/plain", "y")
        requests = (GetDocument("both/a"), *write, GetDocument("codex/a"), GetDocument("claude/a"))
        assert [await may(fork, one) for one in requests] == [True] * 5
        assert [await may(run, one) for one in requests] == [True, True, False, False, False]
        assert [await may(below, one) for one in requests] == [False] * 5
        shown = {(one.folder, one.mode) for one in (await pods.call(ListGrants(), callers[run])).grants}
        assert shown == {("both/sub/", "write"), ("both/", "read")}
        # What the owner has granted to the conversation itself holds.
        await pods.call(GrantAccess("gemini", "codex/", "read", session=below), OWNER)
        assert await may(below, GetDocument("codex/a"))

        await memory.call(StoreMemory("The zebra is codex's", "agent:codex"), OWNER)
        assert (await memory.call(ListMemories(text="zebra"), callers[fork])).memories
        assert not (await memory.call(ListMemories(text="zebra"), callers[run])).memories
        with pytest.raises(FreeholdError, match="belongs to another agent"):
            await memory.call(StoreMemory("x", "agent:codex"), callers[run])
    finally:
        for slot in (pods, memory):
            await slot.close()
