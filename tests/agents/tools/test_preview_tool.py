"""`preview_address`: an agent inside learns where its owner looks, and nothing that would let anybody look."""

import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from tests.gateway.previewing import EMPTY, OTHER, PORT, Previewing, previewing

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
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Previewing]:
    async with previewing(tmp_path_factory.mktemp("preview")) as running:
        yield running


async def preview_address(house: Previewing, **given: object) -> str:
    """As an agent's own command calls it, with its session's token."""
    ground = house.gateway.app._app.state.room.ground  # type: ignore[attr-defined]
    (token,) = ground.environment("a-session").values()
    call = json.dumps({"name": "preview_address", "arguments": given})
    result = await house.computer.run(["/usr/bin/python3", "-c", CALL, token, call])
    assert result.exit_code == 0, result.stderr
    answer = json.loads(result.stdout)
    return str(answer["error"]["message"] if "error" in answer else answer["result"]["content"][0]["text"])


async def test_an_agent_learns_where_its_owner_looks(house: Previewing) -> None:
    told = await preview_address(house, port=PORT)
    assert told == f"{PORT}  {house.origin()}  python3 listens there"
    assert await preview_address(house) == f"{told}\n{OTHER}  {house.origin(OTHER)}  python3 listens there"
    assert await preview_address(house, port=EMPTY) == f"{EMPTY}  {house.origin(EMPTY)}  nothing listens there yet"


async def test_what_it_learns_opens_nothing(house: Previewing) -> None:
    address = (await preview_address(house, port=PORT)).split("  ")[1]
    assert address == house.origin()
    assert (await house.ask("GET", "/seen")).status == 401


async def test_ports_that_are_not_shown_have_no_address(house: Previewing) -> None:
    for port in (22, 1023, 3128, 3130):
        assert "is not shown to the user" in await preview_address(house, port=port)
    for odd in (0, 65536, "5173", True):
        assert await preview_address(house, port=odd) != ""
        assert "localhost" not in await preview_address(house, port=odd)
