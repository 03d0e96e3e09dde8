"""What the tests of channels share: a gateway without a computer, and a channel that is paired with the owner."""

import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.running_gateway import RunningGateway, running_gateway
from tests.support.condition import until
from tests.support.telegram import OWNER, TOKEN, TelegramDouble, running_telegram

from freehold.channels.service import ChannelService
from freehold.channels.store import ChannelRow

CHANNELS = "/v1/channels"


class ChannelGateway:
    """A gateway, used with a token of the scope admin."""

    def __init__(self, gateway: RunningGateway) -> None:
        self.gateway = gateway
        self.headers = gateway.token("admin", name=f"script-{secrets.token_hex(4)}")
        self.service = gateway.context.service(ChannelService)

    async def post(self, path: str, body: Any = None, *, status: int = 200) -> Any:
        reply = await self.gateway.http.post(f"{CHANNELS}{path}", json=body or {}, headers=self.headers)
        assert reply.status_code == status, reply.text
        return reply.json()

    async def row(self, name: str = "telegram") -> ChannelRow:
        return next(one for one in await self.service.list() if one.name == name)

    async def read_health(self) -> str:
        """The state of the channels and why."""
        await self.gateway.publisher.health.probe("channels")
        health = (await self.gateway.http.get("/health", headers=self.headers)).json()
        (found,) = [one for one in health["components"] if one["name"] == "channels"]
        return f"{found['state']} {found['required']} {found['last_error']}"

    async def add_telegram(self, double: TelegramDouble) -> None:
        body = {"kind": "telegram", "settings": {"api": double.url}, "secret": TOKEN}
        await self.post("", body, status=201)

        async def is_followed() -> bool:
            return (await self.row()).cursor is not None

        # What is said before the first poll is forgotten. Polls of a channel that was removed before do not count.
        await until(is_followed)

    async def pair_telegram(self, double: TelegramDouble, sender: int = OWNER) -> None:
        """And sends everything at once."""
        await self.add_telegram(double)
        code = (await self.post("/telegram/pair"))["code"]
        double.say(f"/pair {code}", sender=sender)
        await until(lambda: any("paired" in text for text in double.texts()))
        await self.prefer(batch=0)

    async def prefer(self, name: str = "telegram", **preferences: Any) -> None:
        given = {"tells": ["needs_you", "finished", "failed", "budget", "routine"], **preferences}
        path = f"{CHANNELS}/{name}/preferences"
        reply = await self.gateway.http.patch(path, json=given, headers=self.headers)
        assert reply.status_code == 200, reply.text

    async def finish_turn(
        self, text: str, *, title: str = "A title", reason: str = "end_turn", error: str | None = None
    ) -> str:
        """An agent has done something, or failed with this error. Returns the session."""
        await self.gateway.context.sessions.ready.wait()
        store = self.gateway.context.sessions.dependencies.store
        session = store.create("builtin", title, None, who="test").id
        prompt: Any = {"text": "Do it", "files": [], "images": []}
        turn, _ = store.turns.add(session, "key", prompt, first=False, waits=False, who="test")
        store.append(
            session,
            turn.turn,
            [
                ("message", {"id": "1", "text": text}),
                *([("error", {"code": "agent.failed", "message": error})] if error is not None else []),
                ("turn.ended", {"stop_reason": reason, "changes": None, "usage": None}),
            ],
            status="idle",
            ended=True,
        )
        return session


@pytest.fixture
def telegram() -> Iterator[TelegramDouble]:
    with running_telegram() as double:
        yield double


OpenGateway = Callable[[str], AbstractAsyncContextManager[ChannelGateway]]


@pytest.fixture
def open_gateway(tmp_path: Path) -> OpenGateway:
    """Opens the same home again and again."""

    @asynccontextmanager
    async def opened(manifest: str = "") -> AsyncIterator[ChannelGateway]:
        async with running_gateway(tmp_path, manifest) as running:
            yield ChannelGateway(running)

    return opened


@pytest.fixture
async def gateway(open_gateway: OpenGateway) -> AsyncIterator[ChannelGateway]:
    async with open_gateway("[channels]\napprovals = true\n") as opened:
        yield opened
