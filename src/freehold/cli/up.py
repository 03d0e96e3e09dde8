"""`freehold up`."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, TypedDict

import click

from freehold.cli._json_output import JsonOutput, echo_json, json_option
from freehold.cli._options import home_option
from freehold.errors import FreeholdError
from freehold.home import Home


class StartEvent(TypedDict):
    """What the keeper does: `stage`, `ready` or `not-ready`, `lost`, `stopping`, `straggling`, `stopped`.

    `ready` and `not-ready` have the address, the sign-in link and what is missing.
    """

    event: str


@click.command()
@click.option("-d", "--detach", is_flag=True, help="Start in the background and return when it is ready.")
@home_option
@json_option(JsonOutput(StartEvent, "lines"))
def command(detach: bool, home: Home, as_json: bool) -> None:
    """Start Freehold and keep it running until Ctrl-C.

    No manifest is needed: without a freehold.toml, every setting has a default for a laptop. Nothing is downloaded or
    installed. If something is missing, the error names the command that installs it.

    \b
    Examples:
      freehold up              in the foreground
      freehold up -d           in the background; freehold down stops it
      FREEHOLD_GATEWAY_PORT=4000 freehold up
    """
    announcer = _Announcer(home, as_json)
    if detach:
        _start_detached(home, announcer)
        return
    from freehold.installed_version import begin_start
    from freehold.keeper.runner import run_keeper

    start = begin_start("freehold.cli.main", ["up", "--home", str(home.root), *(["--json"] if as_json else [])])
    run_keeper(home, announce=start.watch(announcer))


class _Announcer:
    """Prints the events of the keeper as text or as lines of JSON."""

    def __init__(self, home: Home, as_json: bool) -> None:
        self._home = home
        self._as_json = as_json
        self._booted = False

    def __call__(self, event: str, data: dict[str, Any]) -> None:
        if self._as_json:
            if event not in ("stage_began", "sealed"):
                echo_json({"event": event, **data})
            return
        match event:
            case "ready" | "not-ready":
                self._booted = True
                click.echo(describe_start(data, ready=event == "ready", agents=_has_agents(self._home)))
            case "sealed" if self._booted:
                click.secho("  ready again", fg="green")
            case "lost":
                for cause in data["missing"]:
                    click.secho(f"  {cause}", fg="yellow")
            case "stopping":
                click.echo("\nStopping (press Ctrl-C again to stop at once)", err=True)
            case "straggling":
                click.secho(
                    f"  Ended because not finished in time: {', '.join(data['stragglers'])}", fg="yellow", err=True
                )
            case "stopped":
                click.echo("Stopped. Your files and their history are kept.", err=True)


def describe_start(facts: dict[str, Any], *, ready: bool, agents: bool) -> str:
    """The summary after the start: address, sign-in, isolation, data folder, how to stop, next step."""
    title = (
        click.style("Freehold is running", bold=True, fg="green")
        if ready
        else click.style("Freehold is running, but not ready", bold=True, fg="yellow")
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
        line("", "", "works once, within 10 minutes; for a new one: freehold open")
    else:
        line("Sign in", f"with AT Protocol, as {facts['owner']}")
    line("Isolation", _describe_isolation(facts["isolation"]))
    line("Data", facts["home"])
    line("Undo", facts["keeper_url"], "recovery page; works when everything else is down")
    line("Stop", "Ctrl-C" if sys.stdout.isatty() else "freehold down")
    here = Path(sys.executable).with_name("freehold")
    if shutil.which("freehold") is None and here.exists():
        line("Command", str(here), f'to use it as freehold: export PATH="{here.parent}:$PATH"')
    if not agents:
        line("Next", "freehold agents add builtin", "installs an agent; then: freehold try, or freehold models add")
    for one in facts["advice"]:
        line("Advice", f"{one['message']} [{one['code']}]", one["hint"])
    return "\n".join([*lines, ""])


def _has_agents(home: Home) -> bool:
    """Whether an agent is installed. Looks only for its file, because the keeper imports nothing of `agents`."""
    return any(home.agents.glob("[!.]*/freehold.json"))


def _describe_isolation(isolation: dict[str, Any] | None) -> str:
    if isolation is None:
        return click.style("none: the computer is not running", fg="yellow")
    walls = isolation["walls"]
    namespaces = [wall for wall in walls if wall.endswith(" namespace")]
    others = [wall for wall in walls if wall not in namespaces]
    summary = f"{isolation['backend']} {isolation['version']}, {isolation['runs_as']}, {len(namespaces)} namespaces"
    return ", ".join([summary, *others])


def _start_detached(home: Home, announcer: _Announcer) -> None:
    """Start the keeper as a separate process and wait until it is ready or has failed."""
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
                data = json.loads(line)
                event = data.pop("event")
                if event == "failed":
                    raise FreeholdError(data["code"], data["message"], hint=data["hint"])
                announcer(event, data)
                if event == "not-ready":
                    raise FreeholdError(
                        "keeper.not-ready",
                        f"The keeper is running (pid {keeper.pid}), but not all programs are ready",
                        hint="See why: freehold status, freehold logs. To stop it: freehold down",
                    )
                if event == "ready":
                    # The keeper outlives this process; init, or a subreaper, waits for it.
                    keeper.returncode = 0
                    return
    except KeyboardInterrupt:
        keeper.terminate()
        raise
    raise FreeholdError("keeper.died", "The keeper ended before it was ready", hint="See why: freehold logs keeper")
