"""`freehold up`."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from freehold.cli._options import home_option, json_option
from freehold.errors import FreeholdError
from freehold.home import Home


@click.command()
@click.option("-d", "--detach", is_flag=True, help="Start in the background and return when it is ready.")
@home_option
@json_option
def command(detach: bool, home: Home, as_json: bool) -> None:
    """Start Freehold here and keep it running until Ctrl-C.

    Needs no manifest: without a freehold.toml everything has a default that suits a laptop. Nothing is downloaded
    or installed; what is missing is named, with the command that gets it.

    \b
    Examples:
      freehold up              in the foreground
      freehold up -d           in the background; freehold down stops it
      FREEHOLD_GATEWAY_PORT=4000 freehold up
    """
    tell = _Teller(home, as_json)
    if detach:
        _start_detached(home, tell)
        return
    from freehold.keeper.running import run_keeper

    run_keeper(home, announce=tell)


class _Teller:
    """Turns what the keeper announces into words on the terminal, or lines of JSON."""

    def __init__(self, home: Home, as_json: bool) -> None:
        self._home = home
        self._as_json = as_json
        self._booted = False

    def __call__(self, event: str, data: dict[str, Any]) -> None:
        if self._as_json:
            if event not in ("stage_began", "sealed"):
                click.echo(json.dumps({"event": event, **data}))
            return
        match event:
            case "ready" | "not-ready":
                self._booted = True
                click.echo(describe(data, ready=event == "ready", agents=_has_agents(self._home)))
            case "sealed" if self._booted:
                click.secho("  ready again", fg="green")
            case "lost":
                for cause in data["missing"]:
                    click.secho(f"  {cause}", fg="yellow")
            case "stopping":
                click.echo("\nStopping (Ctrl-C again does not wait)", err=True)
            case "straggling":
                click.secho(
                    f"  {', '.join(data['stragglers'])} did not finish in time and was ended", fg="yellow", err=True
                )
            case "stopped":
                click.echo("Stopped. Your files and their history are where they were.", err=True)


def describe(facts: dict[str, Any], *, ready: bool, agents: bool) -> str:
    """The one clear block: address, how to sign in, isolation in force, where data lives, how to stop, what is next."""
    title = (
        click.style("Freehold is running", bold=True, fg="green")
        if ready
        else click.style("Freehold is up, but not ready", bold=True, fg="yellow")
    )
    lines = ["", f"  {title}" + click.style(f"   {facts['seconds']:.1f} s", dim=True), ""]

    def line(name: str, value: str, note: str = "") -> None:
        lines.append(
            "  " + click.style(f"{name:<10}", dim=True) + value + (click.style(f"   {note}", dim=True) if note else "")
        )

    for cause in facts["missing"]:
        line("Missing", click.style(cause, fg="yellow"))
    line("Open", click.style(facts["url"], bold=True))
    if facts["sign_in"]:
        line("Sign in", facts["sign_in"])
        line("", "", "works once, within 10 minutes; freehold open makes another")
    else:
        line("Sign in", f"with AT Protocol, as {facts['owner']}")
    line("Isolation", _isolation(facts["isolation"]))
    line("Data", facts["home"])
    line("Undo", facts["keeper_url"], "works when everything else is down")
    line("Stop", "Ctrl-C" if sys.stdout.isatty() else "freehold down")
    here = Path(sys.executable).with_name("freehold")
    if shutil.which("freehold") is None and here.exists():
        line("Command", str(here), f'in every shell: export PATH="{here.parent}:$PATH"')
    if not agents:
        line(
            "Next", "freehold agents add builtin", "an agent to talk to; freehold models tells how to connect its model"
        )
    for one in facts["advice"]:
        line("Advice", f"{one['message']} [{one['code']}]", one["hint"])
    return "\n".join([*lines, ""])


def _has_agents(home: Home) -> bool:
    """Whether one was ever added, at the price of a look: the keeper loads nothing of the agents' own."""
    return any(home.agents.glob("[!.]*/freehold.json"))


def _isolation(isolation: dict[str, Any] | None) -> str:
    if isolation is None:
        return click.style("none: the computer does not run", fg="yellow")
    walls = isolation["walls"]
    namespaces = [wall for wall in walls if wall.endswith(" namespace")]
    others = [wall for wall in walls if wall not in namespaces]
    held = f"{isolation['backend']} {isolation['version']}, uid {isolation['uid']}, {len(namespaces)} namespaces"
    return ", ".join([held, *others])


def _start_detached(home: Home, tell: _Teller) -> None:
    """Start a keeper of its own and listen to it until it is ready or has failed."""
    reading, writing = os.pipe()
    keeper = subprocess.Popen(
        [sys.executable, "-m", "freehold.keeper", "--home", str(home.root), "--report", str(writing)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=[writing],
        start_new_session=True,
        cwd="/",
    )
    os.close(writing)
    try:
        with os.fdopen(reading) as lines:
            for line in lines:
                told = json.loads(line)
                event = told.pop("event")
                if event == "failed":
                    raise FreeholdError(told["code"], told["message"], hint=told["hint"])
                tell(event, told)
                if event == "not-ready":
                    raise FreeholdError(
                        "keeper.not-ready",
                        f"The keeper runs (pid {keeper.pid}), but not everything it keeps does",
                        hint="freehold status shows why, freehold logs shows more, freehold down stops it",
                    )
                if event == "ready":
                    # It is not ours any more: init, or whoever adopts orphans, waits for it.
                    keeper.returncode = 0
                    return
    except KeyboardInterrupt:
        keeper.terminate()
        raise
    raise FreeholdError(
        "keeper.died", "The keeper ended before it was ready", hint="freehold logs keeper shows its last words"
    )
