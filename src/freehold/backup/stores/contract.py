"""What every store can do. Objects are small enough for memory (at most `MAX_OBJECT` bytes) and have plain names."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from freehold.errors import FreeholdError

MAX_OBJECT = 256 << 20
_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,99}(/[a-z0-9][a-z0-9.-]{0,99}){0,3}", re.ASCII)


@dataclass(frozen=True)
class StoredObject:
    """`modified` is by the clock of the store, in seconds since 1970."""

    name: str
    size: int
    modified: float


class ObjectExists(Exception):
    """There is an object of this name already."""


class ObjectMissing(Exception):
    """There is no object of this name."""


class BackupStore(Protocol):
    """Blocking, and safe for several threads. Raises `backup.unreachable`, `.refused`, `.full` or `.lost` beside what is said here."""

    def put(self, name: str, data: bytes) -> None:
        """All of it is stored durably when this returns, or nothing. Replaces an object of the same name."""

    def create(self, name: str, data: bytes) -> None:
        """As `put`, but raises ObjectExists when there is one. Of two callers at the same time, one succeeds.

        Raises `backup.no-conditions` when the store says that it cannot do this.
        """

    def get(self, name: str) -> bytes:
        """Raises ObjectMissing."""

    def list_objects(self, folder: str) -> Iterator[StoredObject]:
        """Everything below a folder (`packs/`), in any order. What is no object of ours is left out."""

    def delete(self, name: str) -> None:
        """Idempotent."""

    def read_clock(self) -> float:
        """The present time by the clock that `StoredObject.modified` is from."""

    def close(self) -> None: ...


def is_object_name(name: str) -> bool:
    """Names come from our own code, or from a listing of the store, which may hold anything."""
    return _NAME.fullmatch(name) is not None and ".." not in name


def check_object_name(name: str) -> str:
    """Raises ValueError."""
    if not is_object_name(name):
        raise ValueError(f"{name[:100]!r} is no name of an object")
    return name


def store_unreachable(where: str, why: object) -> FreeholdError:
    return FreeholdError(
        "backup.unreachable",
        f"The backup store {where} does not answer: {why}",
        hint="Check the network and [backup] in freehold.toml. Freehold tries again by itself",
    )


def store_refused(where: str, why: object) -> FreeholdError:
    return FreeholdError(
        "backup.refused",
        f"The backup store {where} refuses: {why}",
        hint="Check place, user and key: those of [backup] in freehold.toml, or those that you gave",
    )


def store_full(where: str, why: object) -> FreeholdError:
    return FreeholdError(
        "backup.full",
        f"The backup store {where} is full: {why}",
        hint="Give it more space, or keep less: freehold backup prune",
    )


def store_without_conditions(where: str, why: str) -> FreeholdError:
    return FreeholdError(
        "backup.no-conditions",
        f"{where} {why}, so two Freeholds could damage one backup",
        hint="Use a store that supports If-None-Match, such as AWS, Cloudflare R2, MinIO, Ceph or SeaweedFS",
        kind="unsupported",
    )


def object_lost(where: str, name: str, why: str) -> FreeholdError:
    return FreeholdError(
        "backup.lost",
        f"{name} in the backup store {where} {why}",
        hint="freehold backup verify lists what is affected; freehold backup now stores missing contents again",
    )
