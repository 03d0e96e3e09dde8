"""The state of a remote mount."""

from dataclasses import dataclass
from typing import Literal

RemoteState = Literal["starting", "ready", "failing", "down"]


@dataclass(frozen=True)
class RemoteMountState:
    """`failing`: it is mounted, and the server does not do what it should. `down`: it is not mounted.

    `words` say what is wrong, or nothing. `pid` is the helper's.
    """

    state: RemoteState
    words: str
    pid: int | None
