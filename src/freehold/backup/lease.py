"""Who writes a repository. Each renewal is a new object with the next number, which only one writer can create.

The clock of the store decides whether a lease is old, so that a wrong clock of a writer does no harm.
"""

import json
import socket
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from freehold.backup.repository import BackupRepository, RepositoryListing
from freehold.backup.stores.contract import ObjectExists
from freehold.errors import FreeholdError
from freehold.strict_json import decode

LEASE_SECONDS = 900.0
"""How long a writer that says nothing counts as active."""
MAX_OLD = 8
"""Old leases are deleted when there are more of them."""


@dataclass(frozen=True)
class LeaseHolder:
    """`holder` is a random id of one home on one machine. It is not part of a backup."""

    holder: str
    host: str
    home: str
    active: bool


class Lease:
    def __init__(self, repository: BackupRepository, holder: str, home: str) -> None:
        self._repository = repository
        self._me = LeaseHolder(holder, socket.gethostname(), home, active=True)
        self._number = 0
        self._renewed = float("-inf")

    def acquire(self, listing: RepositoryListing, *, take_over: bool = False) -> None:
        """Raises `backup.leased`, which says who has it."""
        last = max(listing.leases, default=0)
        current = self._read(last)
        if current is not None and current.holder != self._me.holder:
            active = current.active and self._repository.store.read_clock() - listing.leases[last] < LEASE_SECONDS
            if active or not take_over:
                raise _leased(self._repository.where, current, listing.leases[last], active=active)
        self._advance(last, active=True)

    def renew(self, share: float = 1 / 3) -> None:
        """Cheap until this share of the time is over: nobody can have taken it before. Raises `backup.leased`."""
        if _read_clock() - self._renewed > LEASE_SECONDS * share:
            self.confirm()

    def confirm(self) -> None:
        """Raises `backup.leased` if another writer has it, however short ago it was renewed."""
        self._advance(self._number, active=True)

    def release(self) -> None:
        """The next writer need not wait. This Freehold stays the one that may write."""
        self._create(self._number + 1, active=False)

    def _advance(self, number: int, *, active: bool) -> None:
        self._renewed = _read_clock()  # before the request: the store may see it later than this
        self._create(number + 1, active=active)
        leases = self._repository.list_meta().leases
        if max(leases, default=0) != number + 1:  # ours is older than that of somebody who has deleted the ones before
            raise self._taken(max(leases, default=0))
        self._number = number + 1
        old = [one for one in leases if one <= number]
        if len(old) > MAX_OLD:
            for one in old:
                self._repository.delete_lease(one)

    def _create(self, number: int, *, active: bool) -> None:
        mine = LeaseHolder(self._me.holder, self._me.host, self._me.home, active)
        try:
            self._repository.create_lease(number, json.dumps(asdict(mine)).encode())
        except ObjectExists:
            raise self._taken(number) from None

    def _read(self, number: int) -> LeaseHolder | None:
        text = self._repository.get_lease(number) if number else None
        if text is None:
            return None
        try:
            return decode(LeaseHolder, json.loads(text))
        except (ValueError, TypeError):
            return LeaseHolder("unknown", "another version of Freehold", "", active=True)

    def _taken(self, number: int) -> FreeholdError:
        other = self._read(number) or LeaseHolder("", "another machine", "", active=True)
        return _leased(self._repository.where, other, self._repository.store.read_clock(), active=True)


def _read_clock() -> float:
    """Goes on while this machine sleeps, unlike `time.monotonic`: another writer may have taken the lease meanwhile."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _leased(where: str, other: LeaseHolder, since: float, *, active: bool) -> FreeholdError:
    moment = datetime.fromtimestamp(since, UTC).strftime("%Y-%m-%d %H:%M UTC")
    who = f"the Freehold on {other.host}" + (f" in {other.home}" if other.home else "")
    if active:
        hint = f"Stop it there (freehold down). {LEASE_SECONDS / 60:.0f} minutes after its last sign of life: freehold backup now --take-over"
    else:
        hint = "If that one is gone for good, continue from here: freehold backup now --take-over"
    return FreeholdError("backup.leased", f"{where} is written by {who}, last on {moment}", hint=hint, kind="conflict")
