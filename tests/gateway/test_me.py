"""The address of the recovery page and the slots that are on, in `/v1/me`."""

from pathlib import Path

import pytest
from tests.gateway.running_gateway import running_gateway

OWNER = '[owner]\ndid = "did:plc:abcdefghijklmnopqrstuvwx"\n'


@pytest.mark.parametrize("owner", ["", OWNER])
async def test_the_recovery_page_has_a_name_that_no_other_program_has(owner: str, tmp_path: Path) -> None:
    async with running_gateway(tmp_path, owner + "[keeper]\nport = 8123\n") as gateway:
        told = (await gateway.http.get("/v1/me", headers=gateway.token("read"))).json()
        assert told["recovery"] == "http://recovery.localhost:8123/"


async def test_the_caller_is_told_which_slots_are_on(tmp_path: Path) -> None:
    async with running_gateway(tmp_path, '[slots]\nbeads = "local"\nmemory = "local"\n') as gateway:
        told = (await gateway.http.get("/v1/me", headers=gateway.token("read"))).json()
        assert told["slots"] == ["beads", "memory"]
