"""The mounts of the manifest and their state. Nothing is mounted to learn it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from freehold.errors import FreeholdError
from freehold.home import Home

if TYPE_CHECKING:
    from freehold.computer.mounts.remote_state import RemoteMountState
    from freehold.manifest.sections.computer import MountSection

FoundState = Literal["starting", "ready", "failing", "down"]


@dataclass(frozen=True)
class FoundMount:
    """One mount. `words` say why it is not ready."""

    kind: str
    source: str
    target: str
    state: FoundState
    words: str


async def find_mounts(home: Home, mounts: "Sequence[MountSection]") -> tuple[FoundMount, ...]:
    """Those of this machine by their source. Remote ones as the program says that mounts them."""
    from freehold.computer.mounts.rclone_remote import REMOTE_KINDS

    states: dict[str, RemoteMountState] = {}
    if any(mount.kind in REMOTE_KINDS for mount in mounts):
        from freehold.computer.mounts.remote_status import read_states

        states = await read_states(home.run / "mounts.sock")
    return tuple(
        _describe(mount, *(_find_remote(mount, states) if mount.kind in REMOTE_KINDS else _find_local(mount)))
        for mount in mounts
    )


def _describe(mount: "MountSection", state: FoundState, words: str) -> FoundMount:
    return FoundMount(mount.kind, mount.source, mount.target, state, words)


def _find_local(mount: "MountSection") -> tuple[FoundState, str]:
    if mount.kind == "memory":
        return "ready", ""
    source = Path(mount.source).expanduser()
    try:
        source.stat()
    except OSError as error:
        return "down", f"{source}: {error.strerror}"
    return "ready", ""


def _find_remote(mount: "MountSection", states: "dict[str, RemoteMountState]") -> tuple[FoundState, str]:
    found = states.get(mount.target)
    if found is not None:
        return found.state, found.words
    return "down", "; ".join(find_missing_programs()) or "Freehold does not run, or its program mounts does not answer"


def find_missing_programs() -> Iterator[str]:
    from freehold.computer.mounts.helper_process import find_rclone
    from freehold.computer.mounts.mount_point import check_fuse

    for look in (find_rclone, check_fuse):
        try:
            look()
        except FreeholdError as error:
            yield f"{error.message} ({error.hint})"
