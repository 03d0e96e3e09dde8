"""How the author of an entry is made, named and shown: the same words on the command line and on the recovery page."""

from collections.abc import Mapping
from dataclasses import asdict

from freehold.history.model import Author, RequestOrigin

_ORIGIN_WORDS: dict[RequestOrigin, str] = {
    "browser": "browser",
    "token": "token",
    "session": "session",
    "ssh": "SSH",
    "recovery_page": "recovery page",
    "command_line": "command line",
    "channel": "a channel",
}
_OLD_PREFIX = "token:"  # in `agent`, in entries of Freehold 0.1.0


def author_json(author: Author) -> dict[str, str]:
    """The fields that are set, as they are stored and sent."""
    return {name: value for name, value in asdict(author).items() if value is not None}


def describe_author(who: Mapping[str, str]) -> str:
    """One phrase for an author as `author_json` spells it: `owner (browser, sign-in 3f2a)`, `claude turn 4`."""
    agent = who.get("agent") or ""
    token = who.get("token") or (agent.removeprefix(_OLD_PREFIX) if agent.startswith(_OLD_PREFIX) else "")
    if who["by"] == "agent":
        name = agent or "agent"
    elif who.get("terminal"):
        name = f"terminal {who['terminal']}"
    else:
        name = who["by"]
    if who.get("turn") and who["by"] == "agent":
        name += f" turn {who['turn']}"
    details = _describe_origin(who, token)
    return f"{name} ({details})" if details else name


def _describe_origin(who: Mapping[str, str], token: str) -> str:
    via = who.get("via")
    if token:
        return f"token {token}"
    if via == "session":
        return f"session {who['session']}" if who.get("session") else "session"
    words = next((text for origin, text in _ORIGIN_WORDS.items() if origin == via), "")
    return f"{words}, sign-in {who['sign_in']}" if words and who.get("sign_in") else words


def name_actor(author: Author) -> str:
    """The author as the `who` of a timeline event: `owner`, `token:NAME`, `session:ID`, or the kind of author."""
    if author.token:
        return f"token:{author.token}"
    if author.via == "session" and author.session:
        return f"session:{author.session}"
    return author.by
