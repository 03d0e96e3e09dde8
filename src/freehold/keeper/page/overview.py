"""The first page: the state of Freehold, its programs, and the last changes."""

import time

from freehold.keeper.calls import ComputerUsage, KeeperStatus, MountStatus, ProgramStatus, SleepStatus
from freehold.keeper.page.frame import escape_text, render_notice, render_page

GOOD = {"ready", "idle"}
WAITING = {"starting", "waiting", "stopping"}


def render_overview(status: KeeperStatus, history: str, notice: str = "", *, is_moving: bool = False) -> str:
    """`history` is the HTML of the history part; `notice` says what was just done. It is loaded again while it `is_moving`."""
    body = (
        (render_notice(notice) if notice else "")
        + _state(status)
        + history
        + _programs(status)
        + _mounts(status)
        + _facts(status)
    )
    sign_out = '<form method="post" action="sign-out"><button>Sign out</button></form>'
    return render_page(
        "Overview", body, home=status.home, corner=sign_out, refresh=3 if is_moving or not status.ready else None
    )


def format_age(then: float, now: float) -> str:
    return "just now" if now - then < 10 else f"{format_duration(now - then)} ago"


def format_duration(seconds: float) -> str:
    """A duration in words. Negative values, after a change of the clock, become zero."""
    whole = max(0, int(seconds))
    for length, word in ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second")):
        if whole >= length:
            count = whole // length
            return f"{count} {word}{'s' if count > 1 else ''}"
    return "a moment"


def format_size(amount: int | None) -> str:
    if amount is None:
        return "–"
    value = float(amount)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit in ("B", "KB") or value >= 100 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def _state(status: KeeperStatus) -> str:
    if status.ready and status.disk.state != "ok":
        words = "Free some space. Until then files and history may not be written."
        tone = "bad" if status.disk.state == "full" else "warn"
        return (
            f'<section class="state {tone}"><div><b>{escape_text(status.disk.words)}</b><p>{words}</p></div></section>'
        )
    if status.ready:
        link = f'<a class="button main" href="{escape_text(status.url)}">Open Freehold</a>'
        return f'<section class="state"><div><b>Everything is running</b><p>Every program answers.</p></div>{link}</section>'
    causes = (
        "".join(f"<li>{escape_text(cause)}</li>" for cause in status.missing) or "<li>Freehold is still starting</li>"
    )
    words = "You can still undo changes and restart programs here."
    tone = "warn" if all(program.state in GOOD | WAITING for program in status.programs) else "bad"
    return f'<section class="state {tone}"><div><b>Not ready</b><ul>{causes}</ul><p>{words}</p></div></section>'


def _programs(status: KeeperStatus) -> str:
    rows = "".join(_program(program) for program in status.programs)
    return f'<h2>Programs</h2><section class="card">{rows}</section>'


def _program(program: ProgramStatus) -> str:
    state = program.state
    tone = "good" if state in GOOD else "warn" if state in WAITING else "bad"
    facts = [f"for {format_duration(time.time() - program.since)}"]
    if program.memory is not None:
        facts.append(format_size(program.memory))
    if program.restarts:
        facts.append(f"restarted {program.restarts} time{'s' if program.restarts > 1 else ''}")
    if program.next_start_in is not None:
        facts.append(f"next try in {program.next_start_in:.0f} s")
    trouble = f'<p class="minus">{escape_text(program.last_error)}</p>' if program.last_error and tone != "good" else ""
    name = escape_text(program.name)
    return (
        f'<div class="row"><div class="what"><b>{name}</b><span class="tag {tone}">{escape_text(state)}</span>'
        f"<p>{escape_text(' · '.join(facts))}</p>{trouble}</div>"
        f'<form method="post" action="restart"><input type="hidden" name="program" value="{name}">'
        f'<button aria-label="Restart {name}">Restart</button></form></div>'
    )


def _mounts(status: KeeperStatus) -> str:
    if not status.mounts:
        return ""
    rows = "".join(_mount(mount) for mount in status.mounts)
    note = "<p>History does not cover mounts: what is changed there cannot be undone.</p>"
    return f'<h2>Mounts</h2><section class="card">{rows}</section>{note}'


def _mount(mount: MountStatus) -> str:
    tone = {"ready": "good", "starting": "warn"}.get(mount.state, "bad")
    mode = "writable" if mount.writable or mount.kind == "memory" else "read-only"
    facts = " · ".join(word for word in (mount.kind, mount.source, mode) if word)
    trouble = f'<p class="minus">{escape_text(mount.words)}</p>' if mount.words else ""
    return (
        f'<div class="row"><div class="what"><b>{escape_text(mount.target)}</b>'
        f'<span class="tag {tone}">{escape_text(mount.state)}</span><p>{escape_text(facts)}</p>{trouble}</div></div>'
    )


def _facts(status: KeeperStatus) -> str:
    isolation = status.isolation
    walls = (
        f"{isolation.backend} {isolation.version}, {isolation.runs_as} on this machine"
        if isolation
        else "the computer is stopped"
    )
    usage = status.usage
    facts = {
        "Isolation": walls,
        "Computer": "stopped" if usage is None else _describe_usage(usage),
        **({} if status.sleep is None else {"Sleep": _describe_sleep(status.sleep)}),
        "Keeper": f"pid {status.keeper.pid} · {format_size(status.keeper.memory)} · version {status.version}",
        "Manifest": status.manifest.path,
    }
    rows = "".join(f"<dt>{escape_text(name)}</dt><dd>{escape_text(value)}</dd>" for name, value in facts.items())
    return f'<h2>Facts</h2><section class="card pad"><dl class="facts">{rows}</dl></section>'


def _describe_sleep(sleep: SleepStatus) -> str:
    if sleep.trouble is not None:
        return sleep.trouble
    if sleep.asleep:
        given_back = f" · {format_size(sleep.given_back)} memory given back" if sleep.given_back else ""
        return f"asleep · wakes when it is used{given_back}"
    return f"awake · sleeps after {sleep.after / 60:g} min without use"


def _describe_usage(usage: ComputerUsage) -> str:
    processes = usage.processes or 0
    return f"{format_size(usage.memory)} memory · {processes} processes · {format_size(usage.disk)} disk"
