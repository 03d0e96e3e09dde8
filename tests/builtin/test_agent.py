"""The built-in agent, inside a sealed computer, against a scripted model."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import pytest
from tests.builtin.client import BuiltinClient, Json, Refused, run_builtin
from tests.support.condition import DEADLINE, until

from freehold.computer import Computer
from freehold.testing import Call, Conversation, ConversationTurn, Fail, Say, ScriptedModel, ScriptedUsage, Step

LINT = """\
import ast, pathlib, sys
found = 0
for path in sorted(pathlib.Path("src").glob("*.py")):
    tree = ast.parse(path.read_text())
    imported = {a.name: n.lineno for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    for name, line in imported.items():
        if name not in used:
            found += 1
            print(f"{path}:{line}: {name} is imported and not used")
sys.exit(1 if found else 0)
"""
CLOCK = "import os\nimport time\n\n\ndef now():\n    return time.time()\n"
PLACE = "import os\nimport sys\n\n\ndef here():\n    return os.getcwd()\n"
FIX = """\
*** Begin Patch
*** Update File: src/clock.py
-import os
 import time
*** Update File: src/place.py
 import os
-import sys
*** End Patch
"""


async def test_it_runs_the_linter_and_fixes_what_it_finds(computer: Computer) -> None:
    """Real commands, one patch, and a second run that passes."""
    for path, text in (("lint.py", LINT), ("src/clock.py", CLOCK), ("src/place.py", PLACE)):
        await computer.files.mkdir("/workspace/src", parents=True)
        await computer.files.write(f"/workspace/{path}", text.encode())
    script: list[Step] = [
        Call("plan", {"entries": [{"content": "Run the linter", "status": "in_progress"}, {"content": "Fix it"}]}),
        Call("run", {"command": "python3 lint.py"}),
        Call("read", {"path": "src/clock.py"}),
        Call("apply_patch", {"patch": FIX}),
        Call("run", {"command": "python3 lint.py"}),
        Say("Both unused imports are gone; the linter is green."),
    ]
    async with ScriptedModel(script) as model, run_builtin(computer, model) as client:
        session = await client.open("ask")
        answer = await client.prompt(session, "Run the linter and fix the errors")
    assert answer["stopReason"] == "end_turn"
    assert client.said == "Both unused imports are gone; the linter is green."
    assert [asked["toolCall"]["title"] for asked in client.asked] == [
        "python3 lint.py",
        "Patch src/clock.py, src/place.py",
        "python3 lint.py",
    ]
    seen = [turn.text for turn in _conversation(model) if turn.role == "tool"]
    assert "src/clock.py:1: os is imported and not used" in seen[1]
    assert "[exit code 1]" in seen[1]
    assert seen[4] == "[exit code 0]"
    assert await computer.files.read("/workspace/src/clock.py") == CLOCK.replace("import os\n", "").encode()
    assert (await computer.run("python3 lint.py", cwd="/workspace")).exit_code == 0
    assert client.updates[-1]["sessionUpdate"] == "usage_update"
    assert answer["usage"]["outputTokens"] == 6 * 20


@pytest.mark.parametrize("kind", ["openai", "anthropic", "gemini"])
async def test_it_speaks_every_api(computer: Computer, kind: str) -> None:
    """A tool call and its result, in the API of each provider."""
    script: list[Step] = [Call("write", {"path": "note.txt", "content": "hello\n"}), Say("Written.")]
    async with ScriptedModel(script) as model, run_builtin(computer, model, kind=kind) as client:
        answer = await client.prompt(await client.open(), "Write a note")
    assert answer["stopReason"] == "end_turn"
    assert client.said == "Written."
    assert await computer.files.read("/workspace/note.txt") == b"hello\n"
    assert {request.key for request in model.requests} == {"placeholder"}


async def test_a_rejected_tool_call_does_nothing(computer: Computer) -> None:
    script: list[Step] = [
        Call("write", {"path": "a.txt", "content": "a"}),
        Call("run", {"command": "touch b.txt"}),
        Say("Well."),
    ]
    async with ScriptedModel(script) as model, run_builtin(computer, model, allow=lambda asked: False) as client:
        await client.prompt(await client.open(), "Make two files")
    assert len(client.asked) == 2
    assert (await computer.run("ls /workspace")).stdout == b""
    assert all("rejected" in turn.text for turn in _conversation(model) if turn.role == "tool")


async def test_the_modes_limit_what_runs_without_asking(computer: Computer) -> None:
    """read-only writes and runs nothing. accept-edits edits only the workspace without asking."""
    script: list[Step] = [
        Call("write", {"path": "a.txt", "content": "a"}),
        Call("write", {"path": "/home/agent/b.txt", "content": "b"}),
        Call("run", {"command": "cat a.txt"}),
        Say("Done."),
    ]
    async with ScriptedModel(script) as model, run_builtin(computer, model) as client:
        await client.prompt(await client.open("read-only"), "Try")
        assert client.asked == []
        assert (await computer.run("ls /workspace /home/agent/b.txt")).stdout == b"/workspace:\n"
        await client.prompt(await client.open("accept-edits"), "Try")
    assert [asked["toolCall"]["title"] for asked in client.asked] == ["Write /home/agent/b.txt", "cat a.txt"]
    assert await computer.files.read("/workspace/a.txt") == b"a"


async def test_a_write_through_a_link_out_of_the_workspace_is_asked(computer: Computer) -> None:
    """accept-edits is for the workspace only, also when a link leads out of it."""
    await computer.run("ln -s /home/agent/.bashrc /workspace/innocent.txt")
    script: list[Step] = [Call("write", {"path": "innocent.txt", "content": "evil"}), Say("Done.")]
    async with ScriptedModel(script) as model, run_builtin(computer, model, allow=lambda asked: False) as client:
        await client.prompt(await client.open("accept-edits"), "Write")
    assert len(client.asked) == 1
    assert b"evil" not in (await computer.run("cat /home/agent/.bashrc")).stdout


async def test_a_file_that_changed_after_the_question_is_not_overwritten(computer: Computer) -> None:
    """The owner was shown the old state, so the new one is kept."""
    await computer.files.write("/workspace/a.txt", b"one\n")
    script: list[Step] = [Call("edit", {"path": "a.txt", "old": "one", "new": "two"}), Say("Done.")]
    async with ScriptedModel(script) as model, run_builtin(computer, model) as client:

        async def meddle() -> None:
            await computer.files.write("/workspace/a.txt", b"one, by somebody else\n")

        client.before_answer = meddle
        await client.prompt(await client.open(), "Edit")
    assert await computer.files.read("/workspace/a.txt") == b"one, by somebody else\n"
    (diff,) = client.asked[0]["toolCall"]["content"]
    assert (diff["oldText"], diff["newText"]) == ("one\n", "two\n")
    assert "has changed since it was read" in _conversation(model)[-1].text


async def test_cancel_ends_a_command_and_its_children(computer: Computer) -> None:
    async with ScriptedModel() as model, run_builtin(computer, model) as client:
        session = await client.open()
        async with _prompting(client, session, "RUN sleep 1000 & echo started; sleep 1000") as turn:
            await client.until(lambda update: "started" in str(update.get("content")))
            await client.notify("session/cancel", {"sessionId": session})
            assert (await turn)["stopReason"] == "cancelled"
        await until(lambda: _has_ended(computer, "sleep"))
        assert client.ended("failed")
        answer = await client.prompt(session, "SAY still here")
    assert answer["stopReason"] == "end_turn"


async def test_a_command_is_stopped_at_its_timeout(computer: Computer) -> None:
    script: list[Step] = [Call("run", {"command": "echo begun; sleep 1000", "timeout": 1}), Say("It hangs.")]
    async with ScriptedModel(script) as model, run_builtin(computer, model) as client:
        await client.prompt(await client.open(), "Run it")
        await until(lambda: _has_ended(computer, "sleep"))
    assert _conversation(model)[-1].text.startswith("begun\n[stopped after 1 s")


async def test_a_background_command_runs_until_it_is_stopped(computer: Computer) -> None:
    script: list[Step] = [
        Call("run", {"command": "echo ready; exec sleep 1000", "background": True}),
        Call("process", {"name": "job1", "action": "status"}),
        Call("process", {"name": "job1", "action": "stop"}),
        Call("run", {"command": "exec sleep 2000", "background": True}),
        Say("Left one."),
    ]
    async with ScriptedModel(script) as model, run_builtin(computer, model) as client:
        await client.prompt(await client.open(), "Run it")
        await until(lambda: _runs(computer, "sleep 2000"))  # the shell becomes it
        await until(lambda: _has_ended(computer, "sleep 1000"))
    results = [turn.text for turn in _conversation(model) if turn.role == "tool"]
    assert results[0] == "job1 is running in the background\nready"
    assert results[1] == "ready\n[job1 is running]"
    assert results[2] == "ready\n[job1 ended with exit code -15]"
    await until(lambda: _has_ended(computer, "sleep"))


async def test_a_turn_stops_at_the_step_limit(computer: Computer) -> None:
    script: list[Step] = [Call("list", {})]
    async with ScriptedModel(script) as model, run_builtin(computer, model, env={"FREEHOLD_STEPS": "3"}) as client:
        session = await client.open()
        answer = await client.prompt(session, "Go round in circles")
        assert answer["stopReason"] == "max_turn_requests"
        assert "I stopped after 3 steps" in client.said
    assert len(model.requests) == 3


async def test_project_instructions_are_sent_and_skills_load_on_demand(computer: Computer) -> None:
    await computer.files.write("/workspace/AGENTS.md", b"Always use tabs.")
    await computer.files.mkdir("/workspace/.agents/skills/release", parents=True)
    skill = b"---\nname: release\ndescription: How to release\n---\nFirst tag, then push.\n"
    await computer.files.write("/workspace/.agents/skills/release/SKILL.md", skill)
    script: list[Step] = [Call("skill", {"name": "release"}), Say("Done.")]
    async with ScriptedModel(script) as model, run_builtin(computer, model) as client:
        await client.prompt(await client.open(), "Release it")
    first = model.requests[0].body.decode()
    assert "Always use tabs." in first
    assert "- release: How to release" in first
    assert "First tag" not in first
    assert "First tag, then push." in _conversation(model)[-1].text


async def test_a_conversation_is_compacted_before_it_exceeds_the_context(computer: Computer) -> None:
    """Old results are left out, the begin is summarised, and the conversation continues."""
    await computer.run("seq 100000 100400 > /workspace/numbers.txt")
    reads = [Call("read", {"path": "numbers.txt"})] * 9
    script: list[Step] = [*reads, Say("That was a lot.")]
    window = {"FREEHOLD_MODEL_CONTEXT": "6000"}
    full = ScriptedModel(_answer_summaries(script), usage=ScriptedUsage(input=5500))
    async with full as model, run_builtin(computer, model, env=window) as client:
        session = await client.open()
        assert (await client.prompt(session, "Read it often"))["stopReason"] == "end_turn"
        await client.prompt(session, "SAY fine")
    summaries = [request for request in model.requests if b"Summarise this conversation" in request.body]
    assert summaries
    assert b"A summary of the conversation so far" in model.requests[-1].body
    assert b"Read it often" in model.requests[-1].body
    assert client.said.endswith("fine")


@pytest.mark.parametrize("kind", ["openai-compatible", "anthropic"])
async def test_a_context_overflow_is_compacted_once(computer: Computer, kind: str) -> None:
    """The model reports an overflow: the begin is summarised and the turn continues. A second overflow is an error."""
    failed: list[int] = []

    def script(conversation: Conversation) -> Step | None:
        if "Summarise this conversation" in str(conversation):
            return Say("They read numbers.")
        told = [turn.text for turn in conversation.turns if turn.role == "user"]
        if told and "OVERFLOW" in told[-1] and len(failed) < int(told[-1].rpartition("OVERFLOW ")[2][0]):
            failed.append(1)
            return Fail("overflow")
        return Say("Gone on.") if told and "OVERFLOW" in told[-1] else None

    await computer.run("seq 100000 100400 > /workspace/numbers.txt")
    async with ScriptedModel(script) as model, run_builtin(computer, model, kind=kind) as client:
        session = await client.open()
        for _ in range(4):
            await client.prompt(session, 'CALL read {"path": "numbers.txt"}')
        assert (await client.prompt(session, "OVERFLOW 1"))["stopReason"] == "end_turn"
        assert client.said.endswith("Gone on.")
        assert failed == [1]
        failed.clear()
        with pytest.raises(Refused, match="too long"):
            await client.prompt(session, "OVERFLOW 9")
        assert failed == [1, 1]
        await client.prompt(session, "SAY still here")
    assert client.said.endswith("still here")


async def test_the_compact_command_summarises_the_conversation(computer: Computer) -> None:
    """/compact is in the list of commands, summarises the conversation, and sends nothing else."""
    script = _answer_summaries([Say("A long story.")])
    async with ScriptedModel(script) as model, run_builtin(computer, model) as client:
        session = await client.open()
        offered = [one for one in client.updates if one["sessionUpdate"] == "available_commands_update"]
        assert "compact" in [command["name"] for command in offered[-1]["availableCommands"]]
        for number in range(5):
            await client.prompt(session, f"Tell me story {number}")
        before = len(model.requests)
        assert (await client.prompt(session, "/compact"))["stopReason"] == "end_turn"
        assert "The conversation has about" in client.said
        (request,) = model.requests[before:]
        assert b"Summarise this conversation" in request.body
        await client.prompt(session, "Tell me the last one")
    assert b"A summary of the conversation so far" in model.requests[-1].body
    assert b"story 0" not in model.requests[-1].body


async def test_a_session_is_resumed_and_loaded_in_a_new_process(computer: Computer) -> None:
    script: list[Step] = [Call("write", {"path": "a.txt", "content": "a"}), Say("Written.")]
    async with ScriptedModel(script) as model:
        async with run_builtin(computer, model) as client:
            session = await client.open("accept-edits")
            await client.prompt(session, "Write a file")
        where = {"sessionId": session, "cwd": "/workspace", "mcpServers": []}
        async with run_builtin(computer, model) as client:
            answer = await client.request("session/resume", where)
            assert answer["modes"]["currentModeId"] == "accept-edits"
            assert client.said == ""
            await client.prompt(session, "SAY again")
            assert "Write a file" in [turn.text for turn in _conversation(model)]
        async with run_builtin(computer, model) as client:
            await client.request("session/load", where)
            kinds = [update["sessionUpdate"] for update in client.updates]
            assert kinds[:5] == [
                "user_message_chunk",
                "tool_call",
                "tool_call_update",
                "agent_message_chunk",
                "user_message_chunk",
            ]
            listed = await client.request("session/list", {})
            assert [row["sessionId"] for row in listed["sessions"]] == [session]


async def test_an_invalid_session_id_is_refused(computer: Computer) -> None:
    async with run_builtin(computer, None) as client:
        for name in ("../../etc/passwd", "x" * 32, "0" * 32):
            with pytest.raises(Refused, match="session"):
                await client.request("session/load", {"sessionId": name, "cwd": "/workspace", "mcpServers": []})


@pytest.mark.parametrize(
    ("fault", "words"), [("500", "answered 500"), ("cut", "cannot be reached"), ("malformed", "The model")]
)
async def test_a_model_error_is_the_reason_of_the_turn(computer: Computer, fault: str, words: str) -> None:
    async with ScriptedModel() as model, run_builtin(computer, model) as client:
        session = await client.open()
        with pytest.raises(Refused, match=words):
            await client.prompt(session, f"FAIL {fault}")
        assert (await client.prompt(session, "SAY better"))["stopReason"] == "end_turn"


async def test_a_busy_provider_is_waited_for_and_the_owner_sees_it(computer: Computer) -> None:
    tries: list[int] = []

    def script(conversation: Conversation) -> Step | None:
        tries.append(1)
        return Fail("429") if len(tries) < 3 else Say("There you are.")

    async with ScriptedModel(script) as model, run_builtin(computer, model) as client:
        assert (await client.prompt(await client.open(), "Hello"))["stopReason"] == "end_turn"
    assert client.said == "There you are."
    thoughts = [str(one["content"]) for one in client.updates if one["sessionUpdate"] == "agent_thought_chunk"]
    assert len(thoughts) == 2
    assert all("answered 429" in thought and "again in" in thought for thought in thoughts)


async def test_waiting_for_a_busy_provider_can_be_cancelled(computer: Computer) -> None:
    async with ScriptedModel(lambda _: Fail("529")) as model, run_builtin(computer, model) as client:
        session = await client.open()
        async with _prompting(client, session, "Hello") as turn:
            await client.until(lambda update: "again in" in str(update.get("content")))
            await client.notify("session/cancel", {"sessionId": session})
            assert (await turn)["stopReason"] == "cancelled"


async def test_a_model_that_does_not_answer_can_be_cancelled(computer: Computer) -> None:
    asked = asyncio.Event()

    def script(_conversation: Conversation) -> Step:
        asked.set()
        return Fail("hang")

    async with ScriptedModel(script) as model, run_builtin(computer, model) as client:
        session = await client.open()
        async with _prompting(client, session, "Hello") as turn:
            async with asyncio.timeout(DEADLINE):
                await asked.wait()
            await client.notify("session/cancel", {"sessionId": session})
            assert (await turn)["stopReason"] == "cancelled"


async def test_a_call_that_was_cancelled_has_a_result_in_the_next_request(computer: Computer) -> None:
    async with ScriptedModel() as model, run_builtin(computer, model) as client:
        session = await client.open()
        async with _prompting(client, session, "RUN echo started; sleep 1000") as turn:
            await client.until(lambda update: "started" in str(update.get("content")))
            await client.notify("session/cancel", {"sessionId": session})
            await turn
        await client.prompt(session, "SAY again")
    assert "Cancelled" in [turn.text for turn in _conversation(model)]


async def test_without_a_model_it_explains_and_still_runs_commands(computer: Computer) -> None:
    async with run_builtin(computer, None) as client:
        session = await client.open()
        assert (await client.prompt(session, "Hello?"))["stopReason"] == "end_turn"
        assert "freehold models add anthropic" in client.said
        assert "Ollama" in client.said
        client.updates.clear()
        await client.prompt(session, "!echo $((6*7)); exit 3")
        assert client.said == "```\n42\n[exit code 3]\n```"
        assert client.asked == []


async def test_a_prompt_with_a_file_and_an_image(computer: Computer) -> None:
    blocks = [
        {"type": "text", "text": "SAY seen"},
        {"type": "resource_link", "uri": "file:///workspace/a%20b.txt", "name": "a b.txt"},
        {"type": "resource", "resource": {"uri": "file:///workspace/c.txt", "text": "the text of c"}},
        {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="},
    ]
    async with ScriptedModel() as model, run_builtin(computer, model) as client:
        session = await client.open()
        await client.request("session/prompt", {"sessionId": session, "prompt": blocks})
        sent = model.requests[0].body.decode()
        assert "/workspace/a b.txt" in sent
        assert "the text of c" in sent
        assert "data:image/png;base64,iVBORw0KGgo=" in sent
        with pytest.raises(Refused, match="audio"):
            await client.request("session/prompt", {"sessionId": session, "prompt": [{"type": "audio"}]})


def _conversation(model: ScriptedModel) -> Sequence[ConversationTurn]:
    found = model.requests[-1].conversation
    assert found is not None
    return found.turns


async def _runs(computer: Computer, command: str) -> bool:
    return command in [" ".join(one.command) for one in await computer.processes()]


async def _has_ended(computer: Computer, words: str) -> bool:
    """Whether no process has these words. The kernel takes a killed one away a moment later."""
    return not any(words in " ".join(one.command) for one in await computer.processes())


def _answer_summaries(steps: Sequence[Step]) -> Callable[[Conversation], Step | None]:
    """Takes the next step for each request, because a summarised conversation has fewer tool results."""
    taken = iter(steps)

    def choose(conversation: Conversation) -> Step | None:
        return next(taken, None) if conversation.tools else Say("They read numbers.")

    return choose


@asynccontextmanager
async def _prompting(client: BuiltinClient, session: str, text: str) -> AsyncIterator[asyncio.Task[Json]]:
    async with asyncio.TaskGroup() as group:
        yield group.create_task(client.prompt(session, text))
