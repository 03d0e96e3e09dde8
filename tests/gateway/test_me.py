"""The address of the recovery page in `/v1/me`."""

from pathlib import Path

import pytest
from tests.gateway.running_gateway import running_gateway

OWNER = '[owner]\ndid = "did:plc:abcdefghijklmnopqrstuvwx"\n'


@pytest.mark.parametrize(("owner", "name"), [("", "localhost"), (OWNER, "127.0.0.1")])
async def test_the_recovery_page_has_the_host_name_of_the_cookie(owner: str, name: str, tmp_path: Path) -> None:
    """A cookie of localhost is not sent to 127.0.0.1, and the other way round."""
    async with running_gateway(tmp_path, owner + "[keeper]\nport = 8123\n") as gateway:
        told = (await gateway.http.get("/v1/me", headers=gateway.token("read"))).json()
        assert told["recovery"] == f"http://{name}:8123/"
