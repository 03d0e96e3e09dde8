"""`[code]` of the manifest."""

import pytest
from tests.support.condition import until
from tests.support.running_freehold import FreeholdOptions, RunningFreehold

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
FREEHOLD = FreeholdOptions(manifest='[code]\nkeep_contexts = "1s"\n')


async def test_a_context_that_nobody_uses_goes_when_the_manifest_says(freehold: RunningFreehold) -> None:
    created = await freehold.http.post("/v1/code/contexts", json={"language": "python"})

    async def is_gone() -> bool:
        return all(one["id"] != created.json()["id"] for one in await freehold.call("GET", "/v1/code/contexts"))

    await until(is_gone)
