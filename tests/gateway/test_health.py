"""`/health` lists what there is."""

from pathlib import Path

from tests.gateway.running_gateway import RunningGateway, running_gateway


async def list_components(gateway: RunningGateway) -> dict[str, str]:
    answer = await gateway.http.get("/health", headers=gateway.token("read"))
    return {row["name"]: row["state"] for row in answer.json()["components"]}


async def test_a_slot_that_is_off_is_not_listed(gateway: RunningGateway) -> None:
    found = await list_components(gateway)
    assert "timeline" in found
    assert not [name for name in found if name.startswith("slot.")]


async def test_a_slot_that_the_manifest_switches_on_is_listed(tmp_path: Path) -> None:
    async with running_gateway(tmp_path, '[slots]\nbeads = "local"\n') as gateway:
        found = await list_components(gateway)
        assert [name for name in found if name.startswith("slot.")] == ["slot.beads"]
