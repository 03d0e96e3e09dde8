"""The seal: a file that exists only while every required program answers. Nothing answers ready without it."""

import json
import os
from dataclasses import asdict, dataclass

from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.keeper.processes import ProcessId, is_alive


@dataclass(frozen=True)
class Seal:
    """`keeper_pid` and `keeper_started` name the keeper that vouches for it; one whose keeper is dead is void."""

    boot: str
    since: str
    requirements: tuple[str, ...]
    keeper_pid: int
    keeper_started: int


def write_seal(home: Home, seal: Seal) -> None:
    """Atomically: a reader sees the whole seal or none."""
    fresh = home.seal.with_suffix(".new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(asdict(seal), file)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(home.seal)


def withdraw_seal(home: Home) -> bool:
    """Idempotent; says whether there was one."""
    try:
        home.seal.unlink()
    except FileNotFoundError:
        return False
    return True


def read_seal(home: Home) -> Seal | None:
    """The seal in force; None when there is none, or its keeper is no more."""
    try:
        found = json.loads(home.seal.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise FreeholdError(
            "keeper.bad-seal", f"{home.seal} cannot be read: {error}", hint="freehold up writes it anew"
        ) from None
    try:
        requirements = tuple(str(name) for name in found["requirements"])
        seal = Seal(
            str(found["boot"]),
            str(found["since"]),
            requirements,
            int(found["keeper_pid"]),
            int(found["keeper_started"]),
        )
    except (KeyError, TypeError, ValueError):
        return None
    return seal if is_alive(ProcessId(seal.keeper_pid, seal.keeper_started)) else None
