"""Two whole Freeholds: an agent of one works for the other, in a computer of its own, and what it made can be undone."""

import asyncio
import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest
import pytest_asyncio
from tests.support.condition import until
from tests.support.running_freehold import KEY, FreeholdOptions, RunningFreehold, run_freehold

from freehold.egress.vault import Vault
from freehold.mesh.nostr.keys import read_secret_key
from freehold.slots.orchestrator.store import LOST

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
HOST = FreeholdOptions(
    agents=("builtin",),
    manifest='[slots]\norchestrator = "local"\n[agents]\ndefault = "builtin"\n[mesh]\nmode = "peer"\nname = "host"\n',
)
ASKER = FreeholdOptions(manifest='[mesh]\nmode = "peer"\nname = "asker"\n')
Two = tuple[RunningFreehold, RunningFreehold]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def two(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Two]:
    async with (
        run_freehold(tmp_path_factory.mktemp("host"), HOST) as host,
        run_freehold(tmp_path_factory.mktemp("asker"), ASKER) as asker,
    ):
        for one in (host, asker):
            await until(partial(has_mesh, one))
        await until(host.is_connected)
        code = await post(host, "/v1/mesh/codes", grants=["work"])
        await post(asker, "/v1/mesh/neighbours", code=code["code"])
        yield host, asker


async def has_mesh(freehold: RunningFreehold) -> bool:
    return (await freehold.http.get("/v1/mesh")).status_code == 200


async def post(freehold: RunningFreehold, path: str, **body: Any) -> Any:
    answer = await freehold.http.post(path, json=body)
    assert answer.is_success, answer.text
    return answer.json()


async def wait_for(asker: RunningFreehold, work: str, host: RunningFreehold) -> dict[str, Any]:
    """Waits until the work is over. The owner of the host allows what the agent asks there."""
    while True:
        found: dict[str, Any] = await asker.call("GET", f"/v1/mesh/work/{work}")
        if found["work"]["state"] not in ("sending", "working"):
            return found
        for asked in await host.call("GET", "/v1/approvals"):
            await host.http.post(f"/v1/approvals/{asked['id']}", json={"answer": "once"})
        await asyncio.sleep(0.05)


async def test_work_is_done_there_comes_back_is_accepted_and_undone(two: Two) -> None:
    host, asker = two
    sent = await post(
        asker, "/v1/mesh/work", neighbour="host", prompt="WRITE /workspace/page.html made-there\nSAY Done."
    )
    found = await wait_for(asker, sent["id"], host)
    assert found["work"]["state"] == "returned", found
    assert [(one["path"], one["text"].strip()) for one in found["files"]] == [("page.html", "made-there")]
    assert not host.file("page.html").exists()
    assert not asker.file("page.html").exists()
    # A file of the owner with another content is not overwritten.
    asker.file("site").mkdir()
    asker.file("site/page.html").write_text("of the owner")
    refused = await asker.http.post(f"/v1/mesh/work/{sent['id']}/accept", json={"folder": "site"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "history.conflicts")
    assert asker.file("site/page.html").read_text() == "of the owner"
    outside = await asker.http.post(f"/v1/mesh/work/{sent['id']}/accept", json={"folder": "../outside"})
    assert outside.status_code == 400
    accepted = await post(asker, f"/v1/mesh/work/{sent['id']}/accept", folder="from/host")
    assert (accepted["state"], accepted["folder"]) == ("accepted", "from/host")
    assert asker.file("from/host/page.html").read_text().strip() == "made-there"
    await post(asker, "/v1/history/revert", entry=accepted["entry"])
    assert not asker.file("from").exists()
    assert asker.file("site/page.html").read_text() == "of the owner"


async def test_a_job_that_asks_for_the_keys_of_the_other_side_finds_none(two: Two) -> None:
    """It looks wherever a program can look, and returns all that it saw."""
    host, asker = two
    vault, root = Vault(host.home.vault), str(host.home.root)
    key = vault.get("mesh.key").reveal()
    secrets = [KEY, key, read_secret_key(key)._private.secret.hex(), host.token]
    looks = (
        f"cat {root}/vault/* {root}/freehold.toml {root}/identity.db",
        "env; cat /proc/*/environ; cat /proc/*/cmdline",
        "grep -rIls nsec1 /home /workspace /tmp /run /etc /opt",
        "find / -xdev -name '*.key' -o -xdev -name 'mesh.key' -o -xdev -name vault",
        "ls -la / /home /root /run",
    )
    runs = "\n".join(f"RUN ({one}) >> /workspace/found.txt 2>&1; true" for one in looks)
    sent = await post(asker, "/v1/mesh/work", neighbour="host", prompt=f"{runs}\nSAY Done.")
    found = await wait_for(asker, sent["id"], host)
    assert found["work"]["state"] == "returned", found
    await post(asker, f"/v1/mesh/work/{sent['id']}/accept", folder="keys")
    text = asker.file("keys/found.txt").read_text(errors="replace")
    assert "No such file" in text
    said = text + json.dumps(found["events"])
    assert [one for one in secrets if one in said] == []


async def test_a_host_that_is_killed_in_the_middle_of_a_job_says_so_and_does_it_once(two: Two) -> None:
    host, asker = two
    prompt = "WRITE /workspace/one.txt words\nWRITE /workspace/two.txt words\nSAY Done."
    sent = await post(asker, "/v1/mesh/work", neighbour="host", prompt=prompt, title="Killed")

    async def is_asking() -> bool:
        return bool(await host.call("GET", "/v1/approvals"))

    await until(is_asking)
    await host.kill_gateway()
    await until(lambda: has_mesh(host))
    found = await wait_for(asker, sent["id"], host)
    assert (found["work"]["state"], found["work"]["error"]) == ("lost", LOST)
    runs = (await host.call("GET", "/v1/slots/orchestrator/runs"))["runs"]
    assert [one["title"] for one in runs].count("Killed") == 1
