"""The first page: how it is, what runs, what changed lately."""

import time
from typing import Any

from freehold.keeper.page.frame import draw, draw_said, text

GOOD = {"ready"}
WAITING = {"starting", "waiting", "stopping"}


def draw_overview(status: dict[str, Any], history: str, said: str = "") -> str:
    """`history` is the part of the page that the history draws of itself; `said` tells what was just done."""
    body = (draw_said(said) if said else "") + _state(status) + history + _programs(status) + _facts(status)
    sign_out = '<form method="post" action="/sign-out"><button>Sign out</button></form>'
    return draw("Overview", body, home=status["home"], corner=sign_out, refresh=None if status["ready"] else 3)


def ago(then: float, now: float) -> str:
    return "just now" if now - then < 10 else f"{span(now - then)} ago"


def span(seconds: float) -> str:
    """A length of time as people say it; a clock that jumped gives no negative ones."""
    whole = max(0, int(seconds))
    for length, word in ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second")):
        if whole >= length:
            count = whole // length
            return f"{count} {word}{'s' if count > 1 else ''}"
    return "a moment"


def size(amount: int | None) -> str:
    if amount is None:
        return "–"
    value = float(amount)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit in ("B", "KB") or value >= 100 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def _state(status: dict[str, Any]) -> str:
    if status["ready"]:
        link = f'<a class="button main" href="{text(status["url"])}">Open Freehold</a>'
        return f'<section class="state"><div><b>Everything is running</b><p>Every program answers.</p></div>{link}</section>'
    causes = "".join(f"<li>{text(cause)}</li>" for cause in status["missing"]) or "<li>it is still starting</li>"
    words = "You can undo changes and restart programs from here all the same."
    tone = "warn" if all(program["state"] in GOOD | WAITING for program in status["programs"]) else "bad"
    return f'<section class="state {tone}"><div><b>Not ready</b><ul>{causes}</ul><p>{words}</p></div></section>'


def _programs(status: dict[str, Any]) -> str:
    rows = "".join(_program(program) for program in status["programs"])
    return f'<h2>Programs</h2><section class="card">{rows}</section>'


def _program(program: dict[str, Any]) -> str:
    state = program["state"]
    tone = "good" if state in GOOD else "warn" if state in WAITING else "bad"
    facts = [f"for {span(time.time() - program['since'])}"]
    if program["memory"] is not None:
        facts.append(size(program["memory"]))
    if program["restarts"]:
        facts.append(f"restarted {program['restarts']} time{'s' if program['restarts'] > 1 else ''}")
    if program["next_start_in"] is not None:
        facts.append(f"next try in {program['next_start_in']:.0f} s")
    trouble = f'<p class="minus">{text(program["last_error"])}</p>' if program["last_error"] and tone != "good" else ""
    name = text(program["name"])
    return (
        f'<div class="row"><div class="what"><b>{name}</b><span class="tag {tone}">{text(state)}</span>'
        f"<p>{text(' · '.join(facts))}</p>{trouble}</div>"
        f'<form method="post" action="/restart/{name}"><button aria-label="Restart {name}">Restart</button></form></div>'
    )


def _facts(status: dict[str, Any]) -> str:
    isolation = status["isolation"]
    walls = (
        f"{isolation['backend']} {isolation['version']}, uid {isolation['uid']} on this machine"
        if isolation
        else "no computer runs"
    )
    usage = status["usage"] or {}
    facts = {
        "Isolation": walls,
        "Computer": f"{size(usage.get('memory'))} memory · {usage.get('processes') or 0} processes · {size(usage.get('disk'))} disk",
        "Keeper": f"pid {status['keeper']['pid']} · {size(status['keeper']['memory'])} · version {status['version']}",
        "Manifest": status["manifest"]["path"],
    }
    rows = "".join(f"<dt>{text(name)}</dt><dd>{text(value)}</dd>" for name, value in facts.items())
    return f'<h2>Facts</h2><section class="card pad"><dl class="facts">{rows}</dl></section>'
