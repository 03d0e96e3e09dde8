"""HTTP with many readings: requests against three real servers, hostile clients and hostile providers of the model gateway."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

from tests.attack.target import RunRound
from tests.egress.framing_fuzz import check_against, make_request
from tests.egress.http_servers import real_servers
from tests.egress.models.gateway_fuzz import (
    SESSIONS,
    attack_as_client,
    attack_as_provider,
    gateway_to_hostile_provider,
    gateway_to_servers,
)

REQUESTS = 150
CLIENTS = 6
PROVIDERS = 6


@asynccontextmanager
async def open_target(folder: Path) -> AsyncIterator[RunRound]:
    (folder / "clients").mkdir()
    (folder / "provider").mkdir()
    async with (
        real_servers() as servers,
        gateway_to_servers(folder / "clients", servers) as gateway,
        gateway_to_hostile_provider(folder / "provider") as (answered_gateway, hostile, _provider),
    ):

        async def run_round(random: Random) -> int:
            for _ in range(REQUESTS):
                await check_against(servers, make_request(random), explicit=random.random() < 0.5)
            for server in servers:
                await server.take_seen()
                for _ in range(CLIENTS):
                    await attack_as_client(gateway, server, random)
            for _ in range(PROVIDERS):
                await attack_as_provider(answered_gateway, hostile, random)
            return REQUESTS + CLIENTS * len(servers) + PROVIDERS * len(SESSIONS) * 2

        yield run_round
