"""One keeper per home: a lock that the kernel lets go when its holder dies, and that says who holds it."""

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.keeper.processes import identify


@dataclass(frozen=True)
class Holder:
    pid: int
    started: int
    since: float


@contextlib.contextmanager
def hold_home(home: Home, now: float | None = None) -> Iterator[None]:
    """Hold the home's lock; `keeper.already-running` names the holder when there is one."""
    try:
        descriptor = os.open(home.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise FreeholdError(
            "home.not-writable",
            f"Cannot write in {home.root}: {error.strerror}",
            hint="Make it writable for you, or choose another place with --home",
        ) from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise _held(home) from None
        me = identify(os.getpid())
        holder = Holder(os.getpid(), me.started if me else 0, time.time() if now is None else now)
        # A full disk does not keep a keeper from starting: the lock itself needs no byte.
        with contextlib.suppress(OSError):
            os.pwrite(descriptor, json.dumps(asdict(holder)).encode().ljust(128), 0)
        yield
    finally:
        os.close(descriptor)


def read_holder(home: Home) -> Holder | None:
    """Who holds, or last held, the lock."""
    try:
        found = json.loads(home.lock.read_bytes())
        return Holder(int(found["pid"]), int(found["started"]), float(found["since"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _held(home: Home) -> FreeholdError:
    holder = read_holder(home)
    if holder is None:
        who = "another keeper"
    else:
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(holder.since))
        who = f"the keeper with pid {holder.pid}, started {since}"
    return FreeholdError(
        "keeper.already-running",
        f"{home.root} is held by {who}",
        hint="It runs already: freehold open signs you in, freehold status shows it, freehold down stops it",
    )
