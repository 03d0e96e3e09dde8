"""The guide to the API is correct: its names exist and its code runs."""

import asyncio
import re
from pathlib import Path

from tests.gateway.running_gateway import RunningGateway
from tests.support.condition import until

from freehold.client._sync.freehold import SyncFreehold
from freehold.client.stored_tokens import store_token
from freehold.gateway.socket import INVALID_MESSAGE, MAX_MESSAGE_LENGTH, MAX_TOPICS, TOO_SLOW
from freehold.identity.tokens import SCOPES

GUIDE = (Path(__file__).parents[2] / "docs" / "guides" / "api.md").read_text()


def test_each_name_in_the_guide_exists() -> None:
    home = SyncFreehold("http://localhost:3000", token="fh_x")
    for row in re.findall(r"^\| (`home\..*?) \|", GUIDE, re.MULTILINE):
        resource = ""
        for owner, name in re.findall(r"`(home\.)?((?:\.?\w+)+)", row):
            if owner:
                resource = name.rpartition(".")[0] if "." in name else ""
            path = name if owner else f"{resource}{name}"
            found: object = home
            for part in path.split("."):
                found = getattr(found, part)
            assert callable(found), path
    home.close()


def test_the_scopes_and_numbers_in_the_guide_are_correct() -> None:
    assert re.findall(r"^\| `(\w+)` \|", GUIDE, re.MULTILINE) == list(SCOPES)
    assert f"up to {MAX_TOPICS} topics and {MAX_MESSAGE_LENGTH // 1024} KiB" in GUIDE
    assert {str(TOO_SLOW), str(INVALID_MESSAGE), "4401"} <= set(re.findall(r"44\d\d", GUIDE))


async def test_the_code_in_the_guide_runs(gateway: RunningGateway) -> None:
    """The first block follows the timeline and prints a new event."""
    store_token(gateway.url, "guide", gateway.token("read")["authorization"].removeprefix("Bearer "))
    blocks = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        compile(block, "guide", "exec")
    names: dict[str, object] = {}
    source = blocks[0].replace("http://localhost:3000", gateway.url).replace("asyncio.run(main())", "")
    seen = asyncio.Event()
    names["print"] = lambda *words: seen.set() if "egress.tested" in words else None
    exec(source, names)  # the guide is ours
    async with asyncio.TaskGroup() as group:
        following = group.create_task(names["main"]())  # type: ignore[operator]

        async def append_and_see() -> bool:
            await asyncio.to_thread(gateway.services.timeline.append, "egress.tested", {}, who="owner")
            return seen.is_set()

        await until(append_and_see)
        following.cancel()
