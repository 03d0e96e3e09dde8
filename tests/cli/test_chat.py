"""`freehold chat` in a real terminal, with a whole Freehold behind it and a scripted model."""

import asyncio
import codecs
import json
import os
import pty
import re
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.cli.test_completion import complete
from tests.support.freehold import ROOT
from tests.support.running_freehold import FreeholdOptions, RunningFreehold

from freehold.cli._chat_commands import find_file_names
from freehold.client import Freehold
from freehold.client.stored_tokens import store_token
from freehold.errors import FreeholdError
from freehold.identity.tokens import ApiTokens

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
REPLY_TIMEOUT = 60.0
ACTOR = '[agents.actor]\ncommand = "python3 /workspace/actor.py resume"\nmode = "ask"\n'
CHOOSER = '[agents.chooser]\ncommand = "python3 /workspace/actor.py models"\nmode = "ask"\n'
FREEHOLD = FreeholdOptions(agents=("builtin",), manifest=ACTOR + CHOOSER)
NASTY = "\x1b[2J\x1b]52;c;aGk=\x07\x1b]8;;http://evil\x1b\\\x9b1;1H\x90q\x9c\u202egnp\u2066\r\x08\x00\u200bend"


@pytest.fixture(autouse=True)
def actor(freehold: RunningFreehold) -> None:
    """Adds the program that ACTOR and CHOOSER name."""
    freehold.file("actor.py").write_bytes((ROOT / "tests/agents/actor.py").read_bytes())


class Terminal:
    """A program in its own terminal, with everything that it has written."""

    def __init__(self, freehold: RunningFreehold, *words: str, verb: str) -> None:
        self._master, slave = pty.openpty()
        # With a controlling terminal, so that Ctrl-C works as for an owner.
        argv = ["setsid", "--ctty", sys.executable, "-m", "freehold.cli.main", verb, *words]
        self.program = subprocess.Popen(argv, env=freehold.harness.environment, stdin=slave, stdout=slave, stderr=slave)
        os.close(slave)
        self.screen = ""
        self._at = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")()  # a read may end in the middle of a character

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    async def until(self, words: str) -> str:
        """Read until these words appear, and return the output since the last call."""
        async with asyncio.timeout(REPLY_TIMEOUT):
            while (found := self.screen.find(words, self._at)) < 0:
                try:
                    await self._read()
                except OSError:
                    raise AssertionError(f"It ended before {words!r}:\n{self.screen}") from None
        seen, self._at = self.screen[self._at : found + len(words)], found + len(words)
        return seen

    async def rest(self) -> None:
        """Read until the program ends."""
        async with asyncio.timeout(REPLY_TIMEOUT):
            while True:
                try:
                    await self._read()
                except OSError:
                    return

    async def _read(self) -> None:
        """More of the output. Raises `OSError` at its end."""
        self.screen += self._decoder.decode(await asyncio.to_thread(os.read, self._master, 65536))

    def close(self) -> int:
        try:
            return self.program.wait(REPLY_TIMEOUT)
        finally:
            self.program.kill()
            os.close(self._master)


@contextmanager
def chat(freehold: RunningFreehold, *words: str, verb: str = "chat") -> Iterator[Terminal]:
    terminal = Terminal(freehold, *words, verb=verb)
    try:
        yield terminal
    except BaseException:
        terminal.program.kill()
        raise
    finally:
        terminal.code = terminal.close()  # type: ignore[attr-defined]


async def test_a_permission_request_is_answered_by_a_key(freehold: RunningFreehold) -> None:
    """The exact change is shown in color; y writes the file, n does not, and Ctrl-D exits."""
    with chat(freehold) as terminal:
        await terminal.until("> ")
        terminal.type("WRITE note.txt hello\n")
        asked = await terminal.until("[n] no")
        assert "Write note.txt" in asked
        assert "\x1b[32m  +hello\x1b[0m" in asked
        terminal.type("y")
        assert re.search(r"files \+\d \(undo: freehold undo\)", await terminal.until("> "))
        assert freehold.file("note.txt").read_text() == "hello\n"
        assert (await freehold.call("GET", "/v1/sessions"))["sessions"][0]["unread"] is False
        terminal.type("RUN touch refused.txt\n")
        assert "$ touch refused.txt" in await terminal.until("[n] no")
        terminal.type("n")
        said_no = await terminal.until("> ")
        assert "\x1b[2m  no\x1b[0m" in said_no
        assert "✗ rejected" in said_no
        assert "✗ The user rejected" not in said_no
        assert not freehold.file("refused.txt").exists()
        terminal.type("\x04")
    assert terminal.program.returncode == 0


async def test_ctrl_c_cancels_the_turn_and_not_the_program(freehold: RunningFreehold) -> None:
    with chat(freehold, "SLOW") as terminal:
        await terminal.until("tick 00")
        terminal.type("\x03")
        assert "[cancelled]" in await terminal.until("> ")
        terminal.type("SAY still **here**\n")
        await terminal.until("still \x1b[0m\x1b[1mhere")
        await terminal.until("> ")
        terminal.type("/quit\n")
    assert terminal.program.returncode == 0


async def test_no_control_sequence_of_an_agent_reaches_the_terminal(freehold: RunningFreehold) -> None:
    """Escapes that would clear the screen, set the title or hide a command are made visible."""
    freehold.file("evil.sh").write_text("")
    with chat(freehold, "-p", "RUN printf 'x' # \x1b]0;owned\x07\x1b[2J\u202egnp.exe") as terminal:
        await terminal.until("[n] no")
        terminal.type("y")
        await terminal.until("tokens in")
    assert "⟨U+001B⟩]0;owned⟨U+0007⟩⟨U+001B⟩[2J⟨U+202E⟩gnp.exe" in terminal.screen
    assert set(re.findall(r"\x1b[^m]*m", terminal.screen)) >= {"\x1b[0m"}
    assert not re.findall(r"\x1b(?!\[[0-9;]*m)", terminal.screen)
    assert "\u202e" not in terminal.screen


def assert_harmless(screen: str) -> None:
    """The screen has only our own colors and line ends."""
    left = re.sub(r"\x1b\[[0-9;]*m", "", screen.replace("\r\n", "\n"))
    odd = {char for char in left if unicodedata.category(char) in ("Cc", "Cf")} - {"\n"}
    assert not odd, f"{odd!r} in {left!r}"


def _message(kind: str) -> dict[str, object]:
    return {"update": {"sessionUpdate": kind, "content": {"type": "text", "text": NASTY}}}


def _tool(status: str, **more: object) -> dict[str, object]:
    return {"update": {"sessionUpdate": "tool_call", "toolCallId": status, "title": NASTY, "status": status, **more}}


CHANNELS: dict[str, list[dict[str, object]]] = {
    "message": [_message("agent_message_chunk")],
    "thought": [_message("agent_thought_chunk")],
    "tool title": [_tool("in_progress")],
    "tool output": [_tool("failed", content=[{"type": "content", "content": {"type": "text", "text": NASTY}}])],
    "diff": [
        _tool("completed", content=[{"type": "diff", "path": f"/{NASTY}", "oldText": NASTY, "newText": f"{NASTY}2"}])
    ],
    "plan": [{"update": {"sessionUpdate": "plan", "entries": [{"content": NASTY, "status": "pending"}]}}],
    "session title": [{"update": {"sessionUpdate": "session_info_update", "title": NASTY}}, {"say": "end"}],
    "mode": [{"update": {"sessionUpdate": "current_mode_update", "currentModeId": NASTY}}, {"say": "end"}],
    "stop reason": [{"say": "end"}, {"stop": NASTY}],
    "error": [{"say": "end"}, {"fail": NASTY}],
    "last words": [{"say": "end"}, {"dying": NASTY}],
}


@pytest.mark.parametrize("channel", CHANNELS)
async def test_no_message_of_an_agent_controls_the_terminal(freehold: RunningFreehold, channel: str) -> None:
    """Clearing, titles, the clipboard (OSC 52), links (OSC 8), C1 controls and bidirectional marks, in any message."""
    steps = f"[{json.dumps(CHANNELS[channel])}]"
    with chat(freehold, "-a", "actor", "-p", steps) as terminal:
        await terminal.until("end")
        await terminal.rest()
    assert_harmless(terminal.screen)


async def test_no_permission_request_controls_the_terminal(freehold: RunningFreehold) -> None:
    steps = [{"ask": {"title": NASTY, "kind": "execute", "rawInput": {"command": f"ls {NASTY}", "cwd": NASTY}}}]
    with chat(freehold, "-a", "actor", "-p", f"[{json.dumps(steps)}]") as terminal:
        assert "⟨U+001B⟩]52;c;aGk=⟨U+0007⟩" in await terminal.until("[n] no")
        terminal.type("n")
        await terminal.until("[no]")
        await terminal.rest()
    assert_harmless(terminal.screen)


async def test_a_question_is_answered_by_a_number_or_by_typing(freehold: RunningFreehold) -> None:
    """Keys that are pasted after the answer do not answer another question."""
    ask = '{"question": "Which colour?", "choices": ["red", "blue"], "free_text": true}'
    with chat(freehold, f"CALL ask_owner {ask}") as terminal:
        shown = await terminal.until("[n] no")
        for line in ("? Which colour?", "[1] red", "[2] blue", "[t] type an answer"):
            assert line in shown
        terminal.type("2")
        await terminal.until("Tool said: blue")
        await terminal.until("> ")
        terminal.type(f"CALL ask_owner {ask}\n")
        await terminal.until("[n] no")
        terminal.type("tteal\x7f\x7fä l\nnnn")
        await terminal.until("Tool said: teä l")
        await terminal.until("> ")
        terminal.type("\x15/quit\n")
    assert terminal.program.returncode == 0


async def test_the_token_of_a_killed_chat_expires_within_two_minutes(freehold: RunningFreehold) -> None:
    """And the next chat removes it after it has expired."""
    with chat(freehold) as terminal:
        await terminal.until("> ")
        with ApiTokens(freehold.harness.home.identity, owner=None) as tokens:
            (left,) = [token for token in tokens.list() if token.name.startswith("chat-")]
            terminal.program.kill()
            terminal.program.wait()
            assert left.expires is not None
            assert left.expires - left.created <= 120
            assert left.scopes == {"admin"}
            tokens.renew(left.name, left.created)
            assert not tokens.is_active(left.id)
            done = await asyncio.to_thread(freehold.harness.run, "chat", "-p", "SAY next")
            assert done.returncode == 0
            assert [token.name for token in tokens.list()] == ["test"]


async def test_a_remote_freehold_is_used_with_the_token_of_a_login(
    freehold: RunningFreehold, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--to` uses that token and creates none; without a login the error says how to get one."""
    address = f"http://localhost:{freehold.harness.gateway_port}"
    refused = await asyncio.to_thread(freehold.harness.run, "chat", "--to", address, "-p", "SAY hello")
    assert refused.returncode == 1
    assert "freehold login" in refused.stderr
    monkeypatch.setenv("XDG_CONFIG_HOME", freehold.harness.environment["XDG_CONFIG_HOME"])
    store_token(address, "test", freehold.token)
    done = await asyncio.to_thread(freehold.harness.run, "chat", "--to", address, "-p", "SAY from afar")
    assert "from afar" in done.stdout
    nowhere = await asyncio.to_thread(freehold.harness.run, "chat", "--to", "http://localhost:9", "-p", "SAY hello")
    assert nowhere.returncode == 1


async def test_a_script_gets_json_and_an_exit_code(freehold: RunningFreehold) -> None:
    done = await asyncio.to_thread(freehold.harness.run, "chat", "-p", "--json", "SAY for a script")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["kind"] for row in rows][-1] == "turn.ended"
    assert [row["data"]["text"] for row in rows if row["kind"] == "message"] == ["for a script"]
    failed = await asyncio.to_thread(freehold.harness.run, "chat", "-p", "FAIL 500")
    assert failed.returncode == 1
    assert "500" in failed.stdout


async def test_a_session_is_continued_and_no_token_is_left(freehold: RunningFreehold) -> None:
    session = await freehold.open("builtin")
    done = await asyncio.to_thread(freehold.harness.run, "chat", "-p", "--session", session, "!echo $((6*7))")
    assert "42" in done.stdout
    assert [row["kind"] for row in await freehold.events(session)][-1] == "turn.ended"
    with ApiTokens(freehold.harness.home.identity, owner=None) as tokens:
        assert [token.name for token in tokens.list()] == ["test"]
    unknown = await asyncio.to_thread(freehold.harness.run, "chat", "-p", "--session", "nope", "hi")
    assert unknown.returncode == 1
    assert "freehold chat --list shows them" in unknown.stderr
    listed = await asyncio.to_thread(freehold.harness.run, "chat", "--list")
    assert re.search(rf"^{session} .* ago  builtin", listed.stdout, re.MULTILINE)
    rows = json.loads((await asyncio.to_thread(freehold.harness.run, "chat", "--list", "--json")).stdout)
    assert session in [row["id"] for row in rows]
    assert (await asyncio.to_thread(freehold.harness.run, "chat", "--list", "hi")).returncode == 2


async def test_a_program_prompts_and_answers(freehold: RunningFreehold) -> None:
    """The Python client, with an event loop and without."""
    address = f"http://localhost:{freehold.harness.gateway_port}"
    async with Freehold(address, token=freehold.token) as home:
        session = await home.sessions.open("builtin", title="by a program")
        seen = []
        async for update in session.prompt("RUN echo made > made.txt"):
            seen.append(update.kind)
            if update.kind == "approval" and update.data["state"] == "pending":
                assert [one.id for one in await home.sessions.approvals()] == [update.data["id"]]
                await session.answer(update.data["id"], "once")
        assert seen[-1] == "turn.ended"
        assert freehold.file("made.txt").read_text() == "made\n"
        assert session.id in [one.id for one in (await home.sessions.list("by a program")).sessions]
        kept = [update.kind async for update in session.events()]
        assert "turn.started" in kept

    def script() -> str:
        with Freehold.sync(address, token=freehold.token) as home:
            again = home.sessions.get(session.id)
            told = [update.data["text"] for update in again.prompt("SAY once more") if update.kind == "message"]
            home.sessions.delete(session.id)
            return str(told[-1])

    assert await asyncio.to_thread(script) == "once more"


async def test_commands_of_the_chat_do_not_reach_the_agent(freehold: RunningFreehold) -> None:
    """Help, cost and an unknown command are answered here, and make no turn."""
    with chat(freehold) as terminal:
        name = re.search(r"--session (\w+)", await terminal.until("> "))
        assert name is not None
        terminal.type("/help\n")
        assert "undo the last change to your files" in await terminal.until("> ")
        terminal.type("/cost\n")
        assert "This session has cost" in await terminal.until("> ")
        terminal.type("/udno\n")
        assert "There is no command /udno. To list the commands: /help" in await terminal.until("> ")
        terminal.type("/agent\n")
        assert "* builtin" in await terminal.until("> ")
        assert (await freehold.call("GET", f"/v1/sessions/{name[1]}/events"))["events"] == []
        terminal.type("\x04")


async def test_the_last_change_is_shown_and_undone_in_the_chat(freehold: RunningFreehold) -> None:
    with chat(freehold) as terminal:
        await terminal.until("> ")
        terminal.type("WRITE plan.txt first line\n")
        await terminal.until("[n] no")
        terminal.type("y")
        await terminal.until("> ")
        terminal.type("/diff\n")
        shown = await terminal.until("> ")
        assert "+ workspace/plan.txt" in shown
        assert "+first line" in shown
        terminal.type("/undo\n")
        assert "plan.txt" in await terminal.until("Undo this? [y/N]: ")
        terminal.type("n\n")
        await terminal.until("Nothing was changed.")
        assert freehold.file("plan.txt").exists()
        await terminal.until("> ")
        terminal.type("/undo\n")
        await terminal.until("Undo this? [y/N]: ")
        terminal.type("y\n")
        await terminal.until("To take it back: freehold redo")
        assert not freehold.file("plan.txt").exists()
        terminal.type("/quit\n")


async def test_the_model_of_the_chat_is_shown_and_changed(freehold: RunningFreehold) -> None:
    """The next prompt goes to that model."""
    with chat(freehold) as terminal:
        await terminal.until("> ")
        terminal.type("/model\n")
        assert "* anthropic  claude-sonnet-4-5\r\n  local  scripted\r\n" in await terminal.until("> ")
        terminal.type("/model local/second\n")
        assert "The model is now local/second." in await terminal.until("> ")
        terminal.type("SAY with the second\n")
        await terminal.until("with the second")
        await terminal.until("> ")
        terminal.type("/model\n")
        assert "* local  scripted\r\n" in await terminal.until("> ")
        terminal.type("/quit\n")
    assert [each for each in freehold.model.requests if each.method == "POST"][-1].json["model"] == "second"
    assert (await freehold.call("GET", "/v1/sessions"))["sessions"][0]["model"] == "local/second"


async def test_the_model_that_was_chosen_is_named_whether_a_provider_or_the_agent_has_it(
    freehold: RunningFreehold,
) -> None:
    with chat(freehold, "-a", "chooser") as terminal:
        await terminal.until("> ")
        for model in ("local/second", "opus", "local/second", "local"):
            terminal.type(f"/model {model}\n")
            assert f"The model is now {model}." in await terminal.until("> ")
        terminal.type("/model opus\n")
        await terminal.until("> ")
        terminal.type("/model\n")
        assert "  sonnet  Sonnet\r\n* opus  Opus\r\n" in await terminal.until("> ")
        terminal.type("/quit\n")


async def test_tab_offers_entries_sessions_and_models_of_this_freehold(freehold: RunningFreehold) -> None:
    session = await freehold.open("builtin", title="Completed by Tab")
    freehold.file("completed.txt").write_text("Tab")
    (entry, *_) = (await freehold.call("GET", "/v1/history"))["entries"]

    def offered(*words: str) -> list[str]:
        return complete(freehold.home.root, *words, more=freehold.harness.environment)

    assert str(entry["id"]) in await asyncio.to_thread(offered, "undo", "")
    assert session in await asyncio.to_thread(offered, "chat", "--session", "")
    assert await asyncio.to_thread(offered, "chat", "--session", session[:-1]) == [session]
    assert await asyncio.to_thread(offered, "models", "default", "") == ["anthropic", "local"]
    assert await asyncio.to_thread(offered, "models", "add", "anthropic", "--model", "") == ["claude-sonnet-4-5"]


async def test_a_chat_without_a_prompt_leaves_no_row(freehold: RunningFreehold) -> None:
    """Neither the session that it opened, nor the one of another agent."""
    before = await list_all(freehold)
    with chat(freehold) as terminal:
        await terminal.until("> ")
        terminal.type("/agent chooser\n")
        await terminal.until("This is a new session with chooser.")
        await terminal.until("> ")
        terminal.type("/model opus\n")  # starts the agent
        await terminal.until("The model is now opus.")
        assert len(await list_all(freehold)) == len(before) + 2
        await terminal.until("> ")
        terminal.type("\x04")
    assert terminal.program.returncode == 0
    assert await list_all(freehold) == before


async def list_all(freehold: RunningFreehold) -> list[str]:
    return [row["id"] for row in (await freehold.call("GET", "/v1/sessions?limit=200"))["sessions"]]


async def test_a_session_in_which_nothing_was_said_is_in_no_list(freehold: RunningFreehold) -> None:
    """Such as one that was opened in the browser, where a text for it may be kept."""
    async with Freehold(freehold.url, token=freehold.token) as home:
        unused, used = await home.sessions.open("builtin"), await home.sessions.open("builtin")
        _ = [update async for update in used.prompt("SAY used")]
        assert unused.id in await list_all(freehold)
        assert unused.id not in [one.id for one in (await home.sessions.list()).sessions]
        assert unused.id in [one.id for one in (await home.sessions.list(unused=True)).sessions]
        with pytest.raises(FreeholdError) as refused:
            await home.sessions.discard(used.id)
        assert refused.value.code == "session.conflict"
    for words, verb in ((["--list"], "chat"), ([], "sessions")):
        with chat(freehold, *words, verb=verb) as terminal:
            await terminal.rest()
        assert used.id in terminal.screen
        assert unused.id not in terminal.screen


async def test_a_session_that_the_chat_only_continues_is_kept(freehold: RunningFreehold) -> None:
    session = await freehold.open("builtin")
    with chat(freehold, "--session", session) as terminal:
        await terminal.until("> ")
        terminal.type("\x04")
    assert session in await list_all(freehold)


async def test_another_agent_begins_a_new_session(freehold: RunningFreehold) -> None:
    with chat(freehold) as terminal:
        await terminal.until("> ")
        terminal.type("/agent actor\n")
        await terminal.until("This is a new session with actor.")
        await terminal.until("> ")
        terminal.type("/agent nobody\n")
        assert "nobody" in await terminal.until("> ")
        newest = (await freehold.call("GET", "/v1/sessions"))["sessions"][0]
        assert newest["agent"] == "actor"
        terminal.type("/quit\n")


@pytest.mark.parametrize(
    ("prompt", "files"),
    [
        ("compare @a.txt with @b/c.py.", ["a.txt", "b/c.py"]),
        ("@a.txt, @a.txt again", ["a.txt"]),
        ("write to me@example.org", []),
        ("an @ alone", []),
    ],
)
async def test_files_are_named_with_an_at_sign(prompt: str, files: list[str]) -> None:
    assert find_file_names(prompt) == files


async def test_only_files_that_exist_are_handed_over(freehold: RunningFreehold) -> None:
    freehold.file("notes.txt").write_text("milk")
    with chat(freehold) as terminal:
        name = re.search(r"--session (\w+)", await terminal.until("> "))
        assert name is not None
        terminal.type("SAY ask @alice about @notes.txt and @/etc/passwd\n")
        shown = await terminal.until("> ")
        assert "@alice is no file in the workspace, so only the word is sent" in shown
        terminal.type("\x04")
    events = (await freehold.call("GET", f"/v1/sessions/{name[1]}/events"))["events"]
    prompts = [event["data"]["prompt"] for event in events if event["kind"] == "turn.started"]
    assert [prompt["files"] for prompt in prompts] == [["notes.txt"]]
