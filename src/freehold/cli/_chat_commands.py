"""The commands that begin with a slash in `freehold chat`. All other lines are prompts."""

import re
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from freehold.agents.visible_text import make_visible
from freehold.cli._history import CHANGE_SIGNS
from freehold.errors import FreeholdError

if TYPE_CHECKING:
    from freehold.client import Freehold
    from freehold.client._async.sessions import AsyncSession
    from freehold.client.session_models import OfferedCommand

HELP = {
    "/help": "show this list",
    "/model [NAME]": "list the models of this agent, or use another",
    "/agent [NAME]": "list the agents, or start a new session with another",
    "/diff": "show the last change to your files",
    "/undo": "undo the last change to your files, after a question",
    "/cost": "show what this session has cost",
    "/quit": "exit; Ctrl-D does the same",
    "!COMMAND": "run a command in the computer",
    "@FILE": "in a prompt: hand over a file of the workspace",
}
MAX_DIFF_LINES = 200
MAX_FILES = 100
"""As many files as a prompt can hand over."""
_FILE = re.compile(r"(?<!\S)@([^\s@][^\s]*)")


def find_file_names(prompt: str) -> list[str]:
    """What a prompt names with `@`, each once: `compare @old.txt with @new.txt`."""
    return [*dict.fromkeys(found.rstrip(".,;:!?)") for found in _FILE.findall(prompt))][:MAX_FILES]


async def find_files(home: "Freehold", prompt: str) -> list[str]:
    """The files that a prompt names and that exist. A name of anything else stays a word of the prompt."""
    if prompt.startswith("!"):
        return []
    names = find_file_names(prompt)
    found = [name for name in names if await _is_file(home, name)]
    for name in names:
        if name not in found:
            click.secho(
                make_visible(f"@{name} is no file in the workspace, so only the word is sent", lines=False),
                dim=True,
                err=True,
            )
    return found


async def _is_file(home: "Freehold", name: str) -> bool:
    """Also False when the token may not see files."""
    from freehold.agents.sessions.prompt import resolve_path

    try:
        return await home.files.exists(resolve_path(name))
    except FreeholdError:
        return False


class ChatCommands:
    """Runs the commands of one chat. `session` is replaced by `/agent`. `confirm` asks a question that yes answers.

    `is_new`: this chat has opened the session.
    """

    def __init__(
        self, home: "Freehold", session: "AsyncSession", confirm: Callable[[str], bool], *, is_new: bool
    ) -> None:
        self._home = home
        self.session = session
        self._opened = [session.id] if is_new else []
        self._confirm = confirm
        self._own = {
            "/help": self._show_help,
            "/model": self._choose_model,
            "/agent": self._choose_agent,
            "/diff": self._show_last_change,
            "/undo": self._undo_last_change,
            "/cost": self._show_cost,
        }

    async def run(self, line: str) -> bool:
        """Run a line that begins with a slash. False when it is a command of the agent, and so a prompt."""
        name, _, rest = line.strip().partition(" ")
        try:
            if name in self._own:
                await self._own[name](rest.strip())
                return True
            offered = (await self.session.offer()).commands
            if name[1:] in {command.name for command in offered}:
                return False
            click.secho(f"There is no command {make_visible(name, lines=False)}. To list the commands: /help", fg="red")
        except FreeholdError as error:
            click.secho(make_visible(f"{error.message}. {error.next_step}"), fg="red")
        return True

    async def discard_unused(self) -> None:
        """Remove the sessions that this chat has opened and nothing was said in."""
        for session in self._opened:
            with suppress(FreeholdError):  # it was used, or Freehold has ended
                await self._home.sessions.discard(session)

    async def _show_help(self, _: str) -> None:
        _print_rows([*HELP.items()])
        offered = (await self.session.offer()).commands
        if offered:
            click.echo(make_visible(f"\nCommands of {self.session.info.agent}:", lines=False))
            _print_rows([_describe_command(command) for command in offered])

    async def _choose_model(self, name: str) -> None:
        if name:
            try:
                await self.session.set_option("model", name)
            except FreeholdError as error:
                if error.code != "session.no-option":
                    raise
                # The agent does not offer it itself: it may be a provider, or a model of one.
                await self.session.choose_model(name)
            click.echo(make_visible(f"The model is now {name}.", lines=False))
            return
        options = (await self.session.offer()).options
        if options is None or not options.models:
            await self._list_providers()
            return
        for choice in options.models:
            mark = "*" if choice.id == options.model else " "
            click.echo(make_visible(f"{mark} {choice.id}  {choice.name}", lines=False).rstrip())
        click.echo("To use another: /model NAME")

    async def _list_providers(self) -> None:
        """For an agent that offers no models itself, or has not started yet."""
        chosen = (await self._home.sessions.get(self.session.id)).info.model or ""
        for provider in (await self._home.models.state()).models:
            mark = "*" if chosen.partition("/")[0] == provider.name or (not chosen and provider.default) else " "
            click.echo(make_visible(f"{mark} {provider.name}  {provider.model or ''}", lines=False).rstrip())
        click.echo("To use another: /model PROVIDER, or /model PROVIDER/MODEL")

    async def _choose_agent(self, name: str) -> None:
        agents = await self._home.agents.list()
        if not name:
            for agent in agents:
                mark = "*" if agent.name == self.session.info.agent else " "
                state = agent.problem or ("" if agent.installed else "not installed")
                click.echo(make_visible(f"{mark} {agent.name:<12} {agent.title}  {state}", lines=False).rstrip())
            click.echo("To talk to another: /agent NAME")
            return
        self.session = await self._home.sessions.open(name)
        self._opened.append(self.session.id)
        click.echo(
            make_visible(
                f"This is a new session with {name}. Back to the other: freehold chat --session ID", lines=False
            )
        )

    async def _show_last_change(self, _: str) -> None:
        found = await self._home.history.compare("before", "now")
        if not found.files:
            click.echo("The last entry of the history changed no file.")
        for file in found.files:
            _print_file(file)
        if found.total > len(found.files):
            click.echo(f"… and {found.total - len(found.files)} more files")

    async def _undo_last_change(self, _: str) -> None:
        plan = await self._home.history.plan("undo")
        for step in plan.steps[:20]:
            click.echo(make_visible(f"  {step.get('word', ''):<13} {step.get('path', '')}", lines=False))
        if plan.total > 20:
            click.echo(f"  … and {plan.total - 20} more")
        if not plan.total:
            click.echo("There is nothing to undo.")
        elif self._confirm("Undo this?"):
            outcome = await self._home.history.undo()
            click.echo(make_visible(f"Entry {outcome.entry.id}: {outcome.summary}. To take it back: freehold redo"))
        else:
            click.echo("Nothing was changed.")

    async def _show_cost(self, _: str) -> None:
        info = (await self._home.sessions.get(self.session.id)).info
        cost = "nothing yet, or its price is not known" if info.cost is None else f"{info.cost:.4f} dollars"
        click.echo(f"This session has cost {cost}. All of it: freehold usage")


def _describe_command(command: "OfferedCommand") -> tuple[str, str]:
    return f"/{command.name}", command.description


def _print_rows(rows: list[tuple[str, str]]) -> None:
    width = max(len(name) for name, _ in rows)
    for name, about in rows:
        click.echo(make_visible(f"  {name:<{width}}  {about}", lines=False))


def _print_file(file: dict[str, Any]) -> None:
    sign, color = CHANGE_SIGNS.get(str(file.get("word")), ("~", "yellow"))
    note = f"  ({file['note']})" if file.get("note") else ""
    click.secho(make_visible(f"{sign} {file.get('path')}{note}", lines=False), fg=color, bold=True)
    lines = str(file.get("text") or "").split("\n")[2:]
    for line in lines[:MAX_DIFF_LINES]:
        click.secho(make_visible(line, lines=False), fg={"+": "green", "-": "red", "@": "cyan"}.get(line[:1]))
    if len(lines) > MAX_DIFF_LINES:
        click.echo(f"  … {len(lines) - MAX_DIFF_LINES} more lines: freehold diff")
