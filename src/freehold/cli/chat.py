"""`freehold chat`."""

import asyncio
import codecs
import contextlib
import os
import signal
import sys
import termios
import tty
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from freehold.agents.visible_text import make_visible
from freehold.cli._completion import offer, read_agent_names, read_session_names
from freehold.cli._freehold_address import open_address
from freehold.cli._json_output import JsonOutput, echo_json, json_option
from freehold.cli._options import home_option
from freehold.errors import FreeholdError
from freehold.home import Home

if TYPE_CHECKING:
    from freehold.cli._chat_commands import ChatCommands
    from freehold.cli._session_view import SessionView
    from freehold.client import Freehold
    from freehold.client._async.sessions import AsyncSession
    from freehold.client.session_models import SessionUpdate

INTERRUPT = "\x03"
MAX_KEYS = 4096


@click.command()
@click.argument("prompt", required=False)
@click.option(
    "-a",
    "--agent",
    metavar="NAME",
    shell_complete=offer(read_agent_names),
    help="The agent to talk to. [default: agents.default of the manifest]",
)
@click.option("-p", "--print", "once", is_flag=True, help="Send one prompt, print the answer and exit.")
@click.option("--session", metavar="ID", shell_complete=offer(read_session_names), help="Continue an existing session.")
@click.option("--list", "show_list", is_flag=True, help="List the sessions, the most recently used first.")
@click.option("--to", "url", metavar="URL", help="Use a remote Freehold; needs freehold login URL.")
@home_option
@json_option(
    JsonOutput("freehold.client.session_models:SessionUpdate", "lines"),
    JsonOutput("freehold.client.session_models:SessionInfo", "list", when="--list"),
)
@click.pass_context
def command(
    ctx: click.Context,
    prompt: str | None,
    agent: str | None,
    once: bool,
    session: str | None,
    show_list: bool,
    url: str | None,
    home: Home,
    as_json: bool,
) -> None:
    """Talk to an agent in the terminal.

    Ctrl-C stops the agent, Ctrl-D exits. A line that starts with ! runs as a command in the computer. @FILE in a prompt
    hands over a file of the workspace. Commands begin with /, and /help lists them.

    The agent asks before it acts. Press y to allow once, c to allow for this conversation, a to always allow, n to
    reject. Choices have numbers; press t to type an answer. Without a terminal, answer in the browser.

    \b
    Examples:
      freehold chat
      freehold chat -a claude "Run the linter and fix what it finds"
      freehold chat -p "What is in this folder?"
      freehold chat --list
      freehold chat -p --json "Summarise notes.md" | jq -r 'select(.kind=="message").data.text'
    """
    if show_list:
        if prompt or session or once:
            raise click.UsageError("--list cannot be used with PROMPT, -p or --session")
        with open_address(home, url, "chat") as (address, token):
            asyncio.run(_list(address, token, as_json=as_json))
        return
    if prompt is None and not sys.stdin.isatty():
        prompt, once = sys.stdin.read().strip(), True
    if once and not prompt:
        raise click.UsageError("-p needs a prompt: give it as an argument, or pipe it in")
    with open_address(home, url, "chat") as (address, token):
        ended = asyncio.run(_chat(address, token, prompt, agent, session, once=once or as_json, as_json=as_json))
    ctx.exit(ended)


async def _chat(
    address: str,
    token: str | None,
    prompt: str | None,
    agent: str | None,
    name: str | None,
    *,
    once: bool,
    as_json: bool,
) -> int:
    from freehold.cli._chat_commands import ChatCommands
    from freehold.client import Freehold

    async with Freehold(address, token=token) as home:
        session = await _open_session(home, agent, name)
        view = make_view(address, session)
        commands = ChatCommands(home, session, lambda question: click.confirm(question), is_new=name is None)
        if not once:
            line = f"{session.info.agent} · continue later: freehold chat --session {session.id}"
            click.secho(make_visible(line), dim=True)
        try:
            return await _talk(home, commands, view, prompt, once=once, as_json=as_json)
        finally:
            await commands.discard_unused()


async def _talk(
    home: "Freehold", commands: "ChatCommands", view: "SessionView", prompt: str | None, *, once: bool, as_json: bool
) -> int:
    from freehold.cli._chat_commands import find_files

    while True:
        text = prompt or _read_prompt()
        prompt = None
        if text is None or text in ("/quit", "/exit"):
            return 0
        if not text.strip() or (not once and text.startswith("/") and await commands.run(text)):
            continue
        files = await find_files(home, text)
        ended = await run_turn(commands.session, text, files, view, as_json=as_json)
        if once:
            return 0 if ended == "end_turn" else 1


def make_view(address: str, session: "AsyncSession") -> "SessionView":
    from freehold.cli._session_view import SessionView

    return SessionView(
        _write,
        colour=sys.stdout.isatty() and "NO_COLOR" not in os.environ,
        answer_url=None if sys.stdin.isatty() else f"{address}/sessions?id={session.id}",
    )


async def _list(address: str, token: str | None, *, as_json: bool) -> None:
    from freehold.cli._history import format_age
    from freehold.client import Freehold

    async with Freehold(address, token=token) as home:
        page = await home.sessions.list()
    if as_json:
        echo_json([one.model_dump() for one in page.sessions])
        return
    now = datetime.now(UTC)
    for one in page.sessions:
        when = format_age((now - datetime.fromisoformat(one.updated)).total_seconds())
        click.echo(make_visible(f"{one.id}  {when:>10}  {one.agent}  {one.title}".rstrip(), lines=False))
    if page.next is not None:
        click.echo("Older sessions are listed in the control center.")
    if not page.sessions:
        click.echo("There are no sessions. Start one: freehold chat")


async def _open_session(home: "Freehold", agent: str | None, name: str | None) -> "AsyncSession":
    if name is None:
        return await home.sessions.open(agent)
    session = await home.sessions.get(name)
    if agent is not None and session.info.agent != agent:
        raise FreeholdError(
            "session.other-agent",
            f"The agent of session {name} is {session.info.agent}, not {agent}",
            hint="Leave out --agent",
        )
    return session


def _read_prompt() -> str | None:
    """The next prompt; None at the end of input. Ctrl-C discards the line."""
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 - arrows and history on the line
    while True:
        try:
            return input("\n> ")
        except KeyboardInterrupt:
            click.echo("\nTo exit, press Ctrl-D")
        except EOFError:
            click.echo()
            return None


async def run_turn(
    session: "AsyncSession", text: str, files: Sequence[str], view: "SessionView", *, as_json: bool
) -> str:
    """Run one turn and return its stop reason."""
    reason = "error"
    with _read_keys(view) as keys:
        async with asyncio.TaskGroup() as group:
            pressing = group.create_task(_answer_approvals(session, view, keys))
            async for update in session.prompt(text, files=files):
                if update.kind == "turn.ended":
                    reason = str(update.data.get("stop_reason"))
                _show_update(update, view, as_json=as_json)
                if update.kind == "turn.ended" and update.seq is not None and sys.stdout.isatty():
                    await session.see(update.seq)
            pressing.cancel()
    return reason


def _show_update(update: "SessionUpdate", view: "SessionView", *, as_json: bool) -> None:
    if not as_json:
        view.show(update)
    elif not update.is_delta:
        echo_json({"seq": update.seq, "turn": update.turn, "kind": update.kind, "data": update.data})


async def _answer_approvals(session: "AsyncSession", view: "SessionView", keys: "asyncio.Queue[str]") -> None:
    """Answer approvals by key while the turn runs."""
    from freehold.cli._approval_keys import ApprovalKeyReader

    reader = ApprovalKeyReader(_write)
    while True:
        key = await keys.get()
        try:
            if key == INTERRUPT:
                view.end_line()
                click.secho("Stopping…", dim=True, err=True)
                await session.cancel()
            elif view.pending_approvals and (answer := reader.read_key(key, view.pending_approvals[0])) is not None:
                await session.answer(answer.approval, answer.answer, answer.note)
                # Other keys that were pressed or pasted were not meant for the next approval.
                if INTERRUPT in [keys.get_nowait() for _ in range(keys.qsize())]:
                    await session.cancel()
        except FreeholdError as error:
            # It was answered in a browser, or the turn has ended. The session shows which.
            click.secho(error.message, dim=True, err=True)


@contextlib.contextmanager
def _read_keys(view: "SessionView") -> "Iterator[asyncio.Queue[str]]":
    """A queue of pressed keys, including Ctrl-C. The terminal settings are restored afterwards."""
    keys: asyncio.Queue[str] = asyncio.Queue(MAX_KEYS)
    decoder = codecs.getincrementaldecoder("utf-8")(errors="ignore")
    loop = asyncio.get_running_loop()

    def press(key: str) -> None:
        with contextlib.suppress(asyncio.QueueFull):
            keys.put_nowait(key)

    def read(terminal: int) -> None:
        for key in decoder.decode(os.read(terminal, 4096)):
            press(key)

    loop.add_signal_handler(signal.SIGINT, press, INTERRUPT)
    descriptor = sys.stdin.fileno() if sys.stdin.isatty() else None
    before = termios.tcgetattr(descriptor) if descriptor is not None else None
    try:
        if descriptor is not None:
            tty.setcbreak(descriptor)
            loop.add_reader(descriptor, read, descriptor)
        yield keys
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        if descriptor is not None and before is not None:
            loop.remove_reader(descriptor)
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
        view.end_line()


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
