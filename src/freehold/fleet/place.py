"""Where a computer should run, in one word: `fleet`, or `ray://` and the home of a Freehold, with wishes after a `?`.

fleet                                   the fleet of the Freehold of this user
ray:///srv/freehold                     the fleet of the Freehold in that home
fleet?priority=5&strategy=pack          before others, and where others are already
fleet?arch=aarch64&region=home          only on nodes with these labels
fleet?gpus=1                            with a GPU of its own
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl

from freehold.errors import FreeholdError
from freehold.fleet.labels import check_labels
from freehold.fleet.placer import Strategy
from freehold.home import find_home

SOCKET = "fleet.sock"
MIN_PRIORITY, MAX_PRIORITY = -100, 100
_HINT = 'Write "fleet", "ray:///HOME", or with wishes "fleet?priority=5&strategy=pack&arch=x86_64"'


@dataclass(frozen=True)
class Place:
    """`who` is what the program that starts a computer says. A session, `session:ID`, has a quota."""

    socket: Path
    priority: int = 0
    strategy: Strategy | None = None
    who: str = "owner"
    labels: dict[str, str] = field(default_factory=dict)
    gpus: int = 0


def read_place(words: str | None) -> Place:
    """Raises `fleet.bad-address`."""
    where, _, query = (words or "fleet").partition("?")
    wishes = dict(parse_qsl(query, keep_blank_values=True))
    if len(words or "") > 2000:
        raise _refuse("it is too long")
    priority = wishes.pop("priority", "0")
    strategy = wishes.pop("strategy", None)
    who = wishes.pop("who", "owner")
    gpus = wishes.pop("gpus", "0")
    if not re.fullmatch(r"-?[0-9]{1,3}", priority) or not MIN_PRIORITY <= int(priority) <= MAX_PRIORITY:
        raise _refuse(f"priority={priority[:20]!r} is not a number from {MIN_PRIORITY} to {MAX_PRIORITY}")
    if strategy not in (None, "spread", "pack"):
        raise _refuse(f"strategy={strategy[:20]!r} is neither spread nor pack")
    if not re.fullmatch(r"[0-9]{1,2}", gpus):
        raise _refuse(f"gpus={gpus[:20]!r} is not a number from 0 to 99")
    try:
        check_labels(wishes)
    except FreeholdError as error:
        raise _refuse(error.message) from None
    chosen: Strategy | None = None if strategy is None else "PACK" if strategy == "pack" else "SPREAD"
    return Place(_find_socket(where), int(priority), chosen, who[:200], wishes, int(gpus))


def _find_socket(where: str) -> Path:
    if where == "fleet":
        return find_home().run / SOCKET
    scheme, separator, path = where.partition("://")
    if separator and scheme in ("ray", "unix") and path.startswith("/"):
        return Path(path) if scheme == "unix" else find_home(path).run / SOCKET
    raise _refuse(f"{where[:100]!r} names no fleet")


def _refuse(why: str) -> FreeholdError:
    return FreeholdError("fleet.bad-address", f"That is not where a computer can run: {why}", hint=_HINT)
