"""`freehold chat`."""

import asyncio
import codecs
import contextlib
import json
import os
import signal
import sys
import termios
import tty
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from freehold.agents.visible import make_visible
from freehold.cli._options import home_option, json_option
from freehold.errors import FreeholdError
from freehold.home import Home

if TYPE_CHECKING:
    from freehold.cli._screen import Screen
    from freehold.client import Freehold
    from freehold.client._async.sessions import AsyncSession
    from freehold.client.sessions import Update

INTERRUPT = "\x03"
MAX_KEYS = 4096


@click.command()
@click.argument("prompt", required=False)
@click.option("-a", "--agent", metavar="NAME", help="Who answers. [default: agents.default of the manifest]")
@click.option("-p", "--print", "once", is_flag=True, help="Answer this one prompt and leave.")
@click.option("--session", metavar="ID", help="Go on with a session of before.")
@click.option("--list", "show_list", is_flag=True, help="Show the sessions there are, the last used first.")
@click.option("--to", "url", metavar="URL", help="A Freehold elsewhere; needs freehold login URL.")
@home_option
@json_option
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
    """Talk to an agent in the terminal. Ctrl-C stops what it does, Ctrl-D leaves.

    A line that begins with ! runs in the computer. What it wants to do is asked: y once, s for this session,
    a always, n no; choices have numbers, and t types an answer. Without a terminal, questions wait until they are
    answered in the browser.

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
            raise click.UsageError("--list only shows the sessions: leave out the rest")
        with _credentials(home, url) as (address, token):
            asyncio.run(_list(address, token, as_json=as_json))
        return
    if prompt is None and not sys.stdin.isatty():
        prompt, once = sys.stdin.read().strip(), True
    if once and not prompt:
        raise click.UsageError("-p needs a prompt, as an argument or piped in")
    with _credentials(home, url) as (address, token):
        ended = asyncio.run(_chat(address, token, prompt, agent, session, once=once or as_json, as_json=as_json))
    ctx.exit(ended)


@contextlib.contextmanager
def _credentials(home: Home, url: str | None) -> Iterator[tuple[str, str | None]]:
    """Of a Freehold elsewhere those of `freehold login`; here a token that ends with us."""
    if url is not None:
        yield url, None
        return
    from freehold.cli._lent import lent_token
    from freehold.identity.tokens import Tokens
    from freehold.manifest import load_manifest

    manifest = load_manifest(home.manifest, os.environ, home=home.root).manifest
    if not home.identity.exists():
        raise FreeholdError("keeper.not-running", "Freehold has never run here", hint="freehold up")
    with (
        Tokens(home.identity, owner=manifest.owner.did) as tokens,
        lent_token(tokens, "chat", "read", "prompt") as secret,
    ):
        yield f"http://localhost:{manifest.gateway.port}", secret


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
    from freehold.cli._screen import Screen
    from freehold.client import Freehold

    async with Freehold(address, token=token) as home:
        session = await _session(home, agent, name)
        screen = Screen(
            _write,
            colour=sys.stdout.isatty() and "NO_COLOR" not in os.environ,
            elsewhere=None if sys.stdin.isatty() else f"{address}/sessions?id={session.id}",
        )
        if not once:
            words = f"{session.info.agent} · freehold chat --session {session.id} goes on with this"
            click.secho(make_visible(words), dim=True)
        while True:
            text = prompt or _ask()
            prompt = None
            if text is None or text in ("/quit", "/exit"):
                return 0
            if not text.strip():
                continue
            ended = await _turn(session, text, screen, as_json=as_json)
            if once:
                return 0 if ended == "end_turn" else 1


async def _list(address: str, token: str | None, *, as_json: bool) -> None:
    from freehold.cli._history import ago
    from freehold.client import Freehold

    async with Freehold(address, token=token) as home:
        page = await home.sessions.list()
    if as_json:
        click.echo(json.dumps([one.model_dump() for one in page.sessions]))
        return
    now = datetime.now(UTC)
    for one in page.sessions:
        when = ago((now - datetime.fromisoformat(one.updated)).total_seconds())
        click.echo(make_visible(f"{one.id}  {when:>10}  {one.agent}  {one.title}".rstrip(), lines=False))
    if page.next is not None:
        click.echo("Older ones are in the control center: freehold open")
    if not page.sessions:
        click.echo("There is no session yet. freehold chat begins one.")


async def _session(home: "Freehold", agent: str | None, name: str | None) -> "AsyncSession":
    if name is None:
        return await home.sessions.open(agent)
    session = await home.sessions.get(name)
    if agent is not None and session.info.agent != agent:
        raise FreeholdError(
            "session.other-agent", f"{name} is a conversation with {session.info.agent}", hint="Leave out --agent"
        )
    return session


def _ask() -> str | None:
    """The next prompt; None at the end. Ctrl-C takes back the line."""
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 - arrows and history on the line
    while True:
        try:
            return input("\n> ")
        except KeyboardInterrupt:
            click.echo("\nCtrl-D leaves")
        except EOFError:
            click.echo()
            return None


async def _turn(session: "AsyncSession", text: str, screen: "Screen", *, as_json: bool) -> str:
    """How the turn ended, in the agent's words."""
    reason = "error"
    with _keys(screen) as keys:
        async with asyncio.TaskGroup() as group:
            pressing = group.create_task(_answer(session, screen, keys))
            async for update in session.prompt(text):
                if update.kind == "turn.ended":
                    reason = str(update.data.get("stop_reason"))
                _show(update, screen, as_json=as_json)
                if update.kind == "turn.ended" and update.seq is not None and sys.stdout.isatty():
                    await session.see(update.seq)
            pressing.cancel()
    return reason


def _show(update: "Update", screen: "Screen", *, as_json: bool) -> None:
    if not as_json:
        screen.show(update)
    elif not update.is_delta:
        click.echo(json.dumps({"seq": update.seq, "turn": update.turn, "kind": update.kind, "data": update.data}))


async def _answer(session: "AsyncSession", screen: "Screen", keys: "asyncio.Queue[str]") -> None:
    """What the owner's keys say, for as long as the turn goes on."""
    from freehold.cli._asked import Answering

    answering = Answering(_write)
    while True:
        key = await keys.get()
        try:
            if key == INTERRUPT:
                await session.cancel()
            elif screen.questions and (said := answering.press(key, screen.questions[0])) is not None:
                await session.answer(said.approval, said.answer, said.note)
                # What was pressed or pasted besides was not meant for the next question.
                if INTERRUPT in [keys.get_nowait() for _ in range(keys.qsize())]:
                    await session.cancel()
        except FreeholdError as error:
            # Somebody else was faster, or it is over: either way the session itself tells.
            click.secho(error.message, dim=True, err=True)


@contextlib.contextmanager
def _keys(screen: "Screen") -> "Iterator[asyncio.Queue[str]]":
    """Keys as they are pressed, Ctrl-C among them; the terminal is as it was afterwards."""
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
        screen.silence()


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
