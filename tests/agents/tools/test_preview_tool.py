"""`preview_address`: an agent gets the address of a preview, which gives no access by itself."""

import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from tests.gateway.preview_harness import OTHER_PORT, PORT, UNUSED_PORT, PreviewHarness, running_previews

from freehold.agents.tools.server import TOKEN_VARIABLE

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]

CALL = """\
import json, sys, urllib.request
call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": json.loads(sys.argv[2])}
headers = {"authorization": "Bearer " + sys.argv[1]}
request = urllib.request.Request("http://127.0.0.1:3130/mcp", json.dumps(call).encode(), headers)
with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as answer:
    print(answer.read().decode())
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PreviewHarness]:
    async with running_previews(tmp_path_factory.mktemp("preview")) as running:
        yield running


async def preview_address(house: PreviewHarness, **given: object) -> str:
    """Calls the tool as the agent of a session does, with its token."""
    dependencies = house.gateway.app._app.state.context.sessions.dependencies  # type: ignore[attr-defined]
    token = dependencies.host.grant("a-session").environment[TOKEN_VARIABLE]
    call = json.dumps({"name": "preview_address", "arguments": given})
    result = await house.computer.run(["/usr/bin/python3", "-c", CALL, token, call])
    assert result.exit_code == 0, result.stderr
    answer = json.loads(result.stdout)
    return str(answer["error"]["message"] if "error" in answer else answer["result"]["content"][0]["text"])


async def test_an_agent_gets_the_address_of_a_preview(house: PreviewHarness) -> None:
    shown = await preview_address(house, port=PORT)
    assert shown == f"{PORT}  {house.origin()}  python3 listens there"
    assert await preview_address(house) == f"{shown}\n{OTHER_PORT}  {house.origin(OTHER_PORT)}  python3 listens there"
    assert (
        await preview_address(house, port=UNUSED_PORT)
        == f"{UNUSED_PORT}  {house.origin(UNUSED_PORT)}  no program listens there"
    )


async def test_the_address_alone_gives_no_access(house: PreviewHarness) -> None:
    address = (await preview_address(house, port=PORT)).split("  ")[1]
    assert address == house.origin()
    assert (await house.request("GET", "/seen")).status == 401


async def test_ports_without_a_preview_have_no_address(house: PreviewHarness) -> None:
    for port in (22, 1023, 3128, 3130):
        assert "has no preview" in await preview_address(house, port=port)
    for odd in (0, 65536, "5173", True):
        assert await preview_address(house, port=odd) != ""
        assert "localhost" not in await preview_address(house, port=odd)
