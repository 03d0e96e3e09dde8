"""Which host tools the agents of sessions have called, so that the host knows what they read, whatever they say."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

FindTurn = Callable[[str], Awaitable[int | None]]


@dataclass
class CallsOfTurn:
    """`names` of the tools that were called; `has_read`: one of them has answered what others wrote."""

    turn: int | None
    names: set[str] = field(default_factory=set)
    has_read: bool = False


class HostCallLog:
    """Of each session: the calls of its last turn, and those that were made while none was running.

    What came from a web page counts for the whole conversation: it stays in what the model is given.
    """

    def __init__(self, find_turn: FindTurn) -> None:
        self._find_turn = find_turn
        self._turns: dict[str, CallsOfTurn] = {}
        self._idle: dict[str, CallsOfTurn] = {}
        self._web: set[str] = set()

    async def note_call(self, session: str, name: str) -> None:
        self._calls_of(session, await self._find_turn(session)).names.add(name)

    async def note_read(self, session: str, *, from_web: bool) -> None:
        """Before the agent gets the answer."""
        self._calls_of(session, await self._find_turn(session)).has_read = True
        if from_web:
            self._web.add(session)

    def find(self, session: str, turn: int | None) -> CallsOfTurn:
        """The calls of this turn, with those since the agent began that belong to no turn."""
        found = [one for one in (self._turns.get(session), self._idle.get(session)) if one is not None]
        of_turn = [one for one in found if one.turn in (turn, None)]
        return CallsOfTurn(turn, set().union(*(one.names for one in of_turn)), any(one.has_read for one in of_turn))

    def has_read_web(self, session: str) -> bool:
        return session in self._web

    def forget(self, session: str) -> None:
        """Its agent has ended. Idempotent."""
        self._turns.pop(session, None)
        self._idle.pop(session, None)

    def _calls_of(self, session: str, turn: int | None) -> CallsOfTurn:
        if turn is None:
            return self._idle.setdefault(session, CallsOfTurn(None))
        if session not in self._turns or self._turns[session].turn != turn:
            self._turns[session] = CallsOfTurn(turn)
        return self._turns[session]
