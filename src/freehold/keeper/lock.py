"""One keeper per home: a lock file that names its holder. The kernel releases the lock when the holder ends."""

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.keeper.processes import identify_process


@dataclass(frozen=True)
class LockHolder:
    pid: int
    started: int
    since: float


@contextlib.contextmanager
def lock_home(home: Home, now: float | None = None) -> Iterator[None]:
    """Hold the lock of the home; raises `keeper.already-running`, which names the holder."""
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
        me = identify_process(os.getpid())
        holder = LockHolder(os.getpid(), me.started if me else 0, time.time() if now is None else now)
        # The content is only for people: a keeper also starts on a full disk.
        with contextlib.suppress(OSError):
            os.pwrite(descriptor, json.dumps(asdict(holder)).encode().ljust(128), 0)
        yield
    finally:
        os.close(descriptor)


def read_lock_holder(home: Home) -> LockHolder | None:
    """The process that holds the lock, or held it last."""
    try:
        found = json.loads(home.lock.read_bytes())
        return LockHolder(int(found["pid"]), int(found["started"]), float(found["since"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _held(home: Home) -> FreeholdError:
    holder = read_lock_holder(home)
    if holder is None:
        who = "another keeper"
    else:
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(holder.since))
        who = f"the keeper with pid {holder.pid}, started {since}"
    return FreeholdError(
        "keeper.already-running",
        f"{home.root} is in use by {who}",
        hint="Freehold runs already. Sign in with freehold open, or stop it with freehold down",
    )
