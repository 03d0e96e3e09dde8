"""What a tool is given: the session it works for and the client it tells."""

from collections.abc import Sequence
from dataclasses import dataclass

from freehold.builtin.session import Session
from freehold.builtin.step import Kind, Step
from freehold.builtin.wire import Client, Json


@dataclass(frozen=True)
class Work:
    session: Session
    client: Client

    def step(self, call: str | None, title: str, kind: Kind, given: Json, paths: Sequence[str] = ()) -> Step:
        session = self.session
        places = [str(session.within(path)[0]) for path in paths]
        return Step(self.client, session.id, session.mode, call or "call", title, kind, given, places)

    async def tell(self, update: Json) -> None:
        await self.client.update(self.session.id, update)
