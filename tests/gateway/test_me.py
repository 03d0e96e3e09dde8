"""The address of the recovery page in `/v1/me`."""

from pathlib import Path

import pytest
from tests.gateway.running_gateway import running_gateway

OWNER = '[owner]\ndid = "did:plc:abcdefghijklmnopqrstuvwx"\n'


@pytest.mark.parametrize("owner", ["", OWNER])
async def test_the_recovery_page_has_a_name_that_no_other_program_has(owner: str, tmp_path: Path) -> None:
    async with running_gateway(tmp_path, owner + "[keeper]\nport = 8123\n") as gateway:
        told = (await gateway.http.get("/v1/me", headers=gateway.token("read"))).json()
        assert told["recovery"] == "http://recovery.localhost:8123/"
