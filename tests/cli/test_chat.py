"""`freehold chat` in a real terminal, with a whole Freehold behind it and a scripted model."""

import asyncio
import json
import os
import pty
import re
import subprocess
import sys
import unicodedata
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import pytest
import pytest_asyncio
from tests.agents.whole import ROOT, Whole, prepare, running
from tests.builtin.closure import link_builtin

from freehold.client import Freehold
from freehold.client.stored import store_credentials
from freehold.identity.tokens import Tokens
from freehold.testing import ScriptedModel

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
PATIENCE = 60.0
ACTOR = '[agents.actor]\ncommand = "python3 /workspace/actor.py resume"\nmode = "ask"\n'
NASTY = "\x1b[2J\x1b]52;c;aGk=\x07\x1b]8;;http://evil\x1b\\\x9b1;1H\x90q\x9c\u202egnp\u2066\r\x08\x00\u200bend"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Whole]:
    async with ScriptedModel() as model:
        stead = prepare(tmp_path_factory.mktemp("chat"), model.url, (), ACTOR)
        stead.environment["XDG_CONFIG_HOME"] = str(stead.home.root / "config")
        link_builtin(stead.home.agents)
        whole = Whole(stead)
        with running(whole):
            whole.file("actor.py").write_bytes((ROOT / "tests/agents/actor.py").read_bytes())
            yield whole
            await whole.http.aclose()


class Terminal:
    """A program in a terminal of its own, and all that it has written there."""

    def __init__(self, whole: Whole, *words: str) -> None:
        self._master, slave = pty.openpty()
        # With a controlling terminal, so that Ctrl-C is what it is for an owner.
        argv = ["setsid", "--ctty", sys.executable, "-m", "freehold.cli.main", "chat", *words]
        self.program = subprocess.Popen(argv, env=whole.stead.environment, stdin=slave, stdout=slave, stderr=slave)
        os.close(slave)
        self.screen = ""
        self._at = 0

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    async def until(self, words: str) -> str:
        """Reads on until these words come; what came up to them, since the last time."""
        async with asyncio.timeout(PATIENCE):
            while (found := self.screen.find(words, self._at)) < 0:
                try:
                    data = await asyncio.to_thread(os.read, self._master, 65536)
                except OSError:
                    raise AssertionError(f"It ended before {words!r}:\n{self.screen}") from None
                self.screen += data.decode()
        seen, self._at = self.screen[self._at : found + len(words)], found + len(words)
        return seen

    async def rest(self) -> None:
        """To the end of the program."""
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    self.screen += (await asyncio.to_thread(os.read, self._master, 65536)).decode()
                except OSError:
                    return

    def close(self) -> int:
        try:
            return self.program.wait(PATIENCE)
        finally:
            self.program.kill()
            os.close(self._master)


@contextmanager
def chat(whole: Whole, *words: str) -> Iterator[Terminal]:
    terminal = Terminal(whole, *words)
    try:
        yield terminal
    except BaseException:
        terminal.program.kill()
        raise
    finally:
        terminal.code = terminal.close()  # type: ignore[attr-defined]


async def test_a_question_is_answered_by_a_key(whole: Whole) -> None:
    """The exact change is shown in colour; y writes the file, n does not, and Ctrl-D leaves."""
    with chat(whole) as terminal:
        await terminal.until("> ")
        terminal.type("WRITE note.txt hello\n")
        asked = await terminal.until("[n] no")
        assert "Write note.txt" in asked
        assert "\x1b[32m  +hello\x1b[0m" in asked
        terminal.type("y")
        assert re.search(r"files \+\d, freehold undo takes it back", await terminal.until("> "))
        assert whole.file("note.txt").read_text() == "hello\n"
        assert (await whole.call("GET", "/v1/sessions"))["sessions"][0]["unread"] is False
        terminal.type("RUN touch refused.txt\n")
        assert "$ touch refused.txt" in await terminal.until("[n] no")
        terminal.type("n")
        said_no = await terminal.until("> ")
        assert "\x1b[2m  no\x1b[0m" in said_no
        assert "✗ not done" in said_no
        assert "✗ The user rejected" not in said_no
        assert not whole.file("refused.txt").exists()
        terminal.type("\x04")
    assert terminal.program.returncode == 0


async def test_ctrl_c_cancels_the_turn_and_not_the_program(whole: Whole) -> None:
    with chat(whole, "SLOW") as terminal:
        await terminal.until("tick 00")
        terminal.type("\x03")
        assert "[cancelled]" in await terminal.until("> ")
        terminal.type("SAY still **here**\n")
        await terminal.until("still \x1b[0m\x1b[1mhere")
        await terminal.until("> ")
        terminal.type("/quit\n")
    assert terminal.program.returncode == 0


async def test_no_control_sequence_of_the_agents_reaches_the_terminal(whole: Whole) -> None:
    """Escapes that would clear the screen, set the title or hide a command are spelled out."""
    whole.file("evil.sh").write_text("")
    with chat(whole, "-p", "RUN printf 'x' # \x1b]0;owned\x07\x1b[2J\u202egnp.exe") as terminal:
        await terminal.until("[n] no")
        terminal.type("y")
        await terminal.until("tokens in")
    assert "⟨U+001B⟩]0;owned⟨U+0007⟩⟨U+001B⟩[2J⟨U+202E⟩gnp.exe" in terminal.screen
    assert set(re.findall(r"\x1b[^m]*m", terminal.screen)) >= {"\x1b[0m"}
    assert not re.findall(r"\x1b(?!\[[0-9;]*m)", terminal.screen)
    assert "\u202e" not in terminal.screen


def assert_tame(screen: str) -> None:
    """Nothing but colours of our own, and the line ends that the terminal itself makes of ours."""
    left = re.sub(r"\x1b\[[0-9;]*m", "", screen.replace("\r\n", "\n"))
    odd = {char for char in left if unicodedata.category(char) in ("Cc", "Cf")} - {"\n"}
    assert not odd, f"{odd!r} in {left!r}"


def _said(kind: str) -> dict[str, object]:
    return {"update": {"sessionUpdate": kind, "content": {"type": "text", "text": NASTY}}}


def _tool(status: str, **more: object) -> dict[str, object]:
    return {"update": {"sessionUpdate": "tool_call", "toolCallId": status, "title": NASTY, "status": status, **more}}


CHANNELS: dict[str, list[dict[str, object]]] = {
    "message": [_said("agent_message_chunk")],
    "thought": [_said("agent_thought_chunk")],
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
async def test_nothing_that_an_agent_says_moves_the_terminal(whole: Whole, channel: str) -> None:
    """Clearing, titles, the clipboard (OSC 52), links (OSC 8), C1 controls and bidirectional marks, by any way out."""
    steps = f"[{json.dumps(CHANNELS[channel])}]"
    with chat(whole, "-a", "actor", "-p", steps) as terminal:
        await terminal.until("end")
        await terminal.rest()
    assert_tame(terminal.screen)


async def test_a_question_moves_the_terminal_no_more_than_words_do(whole: Whole) -> None:
    steps = [{"ask": {"title": NASTY, "kind": "execute", "rawInput": {"command": f"ls {NASTY}", "cwd": NASTY}}}]
    with chat(whole, "-a", "actor", "-p", f"[{json.dumps(steps)}]") as terminal:
        assert "⟨U+001B⟩]52;c;aGk=⟨U+0007⟩" in await terminal.until("[n] no")
        terminal.type("n")
        await terminal.until("[no]")
        await terminal.rest()
    assert_tame(terminal.screen)


async def test_a_question_is_answered_by_a_number_or_by_typing(whole: Whole) -> None:
    """What is pasted beyond the answer answers nothing else."""
    ask = '{"question": "Which colour?", "choices": ["red", "blue"], "free_text": true}'
    with chat(whole, f"CALL ask_owner {ask}") as terminal:
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


async def test_a_chat_that_is_killed_leaves_a_token_for_two_minutes_at_most(whole: Whole) -> None:
    """And the next one clears it away once it is dead."""
    with chat(whole) as terminal:
        await terminal.until("> ")
        with Tokens(whole.stead.home.identity, owner=None) as tokens:
            (left,) = [token for token in tokens.list() if token.name.startswith("chat-")]
            terminal.program.kill()
            terminal.program.wait()
            assert left.expires is not None
            assert left.expires - left.created <= 120
            assert left.scopes == {"read", "prompt"}
            tokens.renew(left.name, left.created)
            assert not tokens.alive(left.id)
            done = await asyncio.to_thread(whole.stead.run, "chat", "-p", "SAY next")
            assert done.returncode == 0
            assert [token.name for token in tokens.list()] == ["test"]


async def test_a_freehold_elsewhere_is_talked_to_with_the_token_of_a_login(
    whole: Whole, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--to` uses that token and makes none; without a login it says how to get one."""
    address = f"http://localhost:{whole.stead.gateway_port}"
    refused = await asyncio.to_thread(whole.stead.run, "chat", "--to", address, "-p", "SAY hello")
    assert refused.returncode == 1
    assert "freehold login" in refused.stderr
    monkeypatch.setenv("XDG_CONFIG_HOME", whole.stead.environment["XDG_CONFIG_HOME"])
    store_credentials(address, "test", whole.token)
    done = await asyncio.to_thread(whole.stead.run, "chat", "--to", address, "-p", "SAY from afar")
    assert "from afar" in done.stdout
    nowhere = await asyncio.to_thread(whole.stead.run, "chat", "--to", "http://localhost:9", "-p", "SAY hello")
    assert nowhere.returncode == 1


async def test_a_script_gets_json_and_an_exit_code(whole: Whole) -> None:
    done = await asyncio.to_thread(whole.stead.run, "chat", "-p", "--json", "SAY for a script")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["kind"] for row in rows][-1] == "turn.ended"
    assert [row["data"]["text"] for row in rows if row["kind"] == "message"] == ["for a script"]
    failed = await asyncio.to_thread(whole.stead.run, "chat", "-p", "FAIL 500")
    assert failed.returncode == 1
    assert "500" in failed.stdout


async def test_a_session_is_gone_on_with_and_no_token_is_left(whole: Whole) -> None:
    session = await whole.open("builtin")
    done = await asyncio.to_thread(whole.stead.run, "chat", "-p", "--session", session, "!echo $((6*7))")
    assert "42" in done.stdout
    assert [row["kind"] for row in await whole.events(session)][-1] == "turn.ended"
    with Tokens(whole.stead.home.identity, owner=None) as tokens:
        assert [token.name for token in tokens.list()] == ["test"]
    unknown = await asyncio.to_thread(whole.stead.run, "chat", "-p", "--session", "nope", "hi")
    assert unknown.returncode == 1
    assert "freehold chat --list shows them" in unknown.stderr
    listed = await asyncio.to_thread(whole.stead.run, "chat", "--list")
    assert re.search(rf"^{session} .* ago  builtin", listed.stdout, re.MULTILINE)
    rows = json.loads((await asyncio.to_thread(whole.stead.run, "chat", "--list", "--json")).stdout)
    assert session in [row["id"] for row in rows]
    assert (await asyncio.to_thread(whole.stead.run, "chat", "--list", "hi")).returncode == 2


async def test_a_program_prompts_and_answers(whole: Whole) -> None:
    """The Python client, with an event loop and without."""
    address = f"http://localhost:{whole.stead.gateway_port}"
    async with Freehold(address, token=whole.token) as home:
        session = await home.sessions.open("builtin", title="by a program")
        seen = []
        async for update in session.prompt("RUN echo made > made.txt"):
            seen.append(update.kind)
            if update.kind == "approval" and update.data["state"] == "pending":
                assert [one.id for one in await home.sessions.approvals()] == [update.data["id"]]
                await session.answer(update.data["id"], "once")
        assert seen[-1] == "turn.ended"
        assert whole.file("made.txt").read_text() == "made\n"
        assert session.id in [one.id for one in (await home.sessions.list("by a program")).sessions]
        kept = [update.kind async for update in session.events()]
        assert "turn.started" in kept

    def script() -> str:
        with Freehold.sync(address, token=whole.token) as home:
            again = home.sessions.get(session.id)
            told = [update.data["text"] for update in again.prompt("SAY once more") if update.kind == "message"]
            home.sessions.delete(session.id)
            return str(told[-1])

    assert await asyncio.to_thread(script) == "once more"
