"""The seal: a file that exists only while every required program answers. Without it Freehold is not ready."""

import json
import os
from dataclasses import asdict, dataclass

from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.keeper.processes import ProcessId, is_alive


@dataclass(frozen=True)
class Seal:
    """`keeper_pid` and `keeper_started` identify the keeper that wrote it. The seal of a keeper that has ended is not valid."""

    boot: str
    since: str
    requirements: tuple[str, ...]
    keeper_pid: int
    keeper_started: int


def write_seal(home: Home, seal: Seal) -> None:
    """Atomic: a reader sees the whole seal or none."""
    fresh = home.seal.with_suffix(".new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(asdict(seal), file)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(home.seal)


def withdraw_seal(home: Home) -> bool:
    """Remove the seal; returns whether there was one. Idempotent."""
    try:
        home.seal.unlink()
    except FileNotFoundError:
        return False
    return True


def read_seal(home: Home) -> Seal | None:
    """The valid seal; None when there is none, or its keeper has ended."""
    try:
        found = json.loads(home.seal.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise FreeholdError(
            "keeper.bad-seal", f"{home.seal} cannot be read: {error}", hint="freehold up writes a new one"
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
