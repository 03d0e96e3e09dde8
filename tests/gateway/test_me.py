"""Where a browser is told to go when the gateway is down."""

from pathlib import Path

import pytest
from tests.gateway.running import running_gateway

OWNER = '[owner]\ndid = "did:plc:abcdefghijklmnopqrstuvwx"\n'


@pytest.mark.parametrize(("owner", "name"), [("", "localhost"), (OWNER, "127.0.0.1")])
async def test_the_recovery_page_goes_by_the_name_that_the_browser_is_known_by(
    owner: str, name: str, tmp_path: Path
) -> None:
    """A cookie of one name is not sent to the other, though both lead here."""
    async with running_gateway(tmp_path, owner + "[keeper]\nport = 8123\n") as gateway:
        told = (await gateway.http.get("/v1/me", headers=gateway.token("read"))).json()
        assert told["recovery"] == f"http://{name}:8123/"
