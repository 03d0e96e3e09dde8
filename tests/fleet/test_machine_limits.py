"""What Ray's autoscaler may ask for: a Ray that was taken over starts no more than the owner allows, and ends nothing busy."""

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

from tests.fleet.test_routes import SilentHead
from tests.support.condition import until

from freehold.fleet.autoscaler import Autoscaler
from freehold.fleet.join_door import JoinGrant
from freehold.fleet.section import AutoscalerSection


class Provider:
    """Writes down what it is asked to do, when it begins and when it is done. `grants` are the codes that were made.

    While there is a file `wait-start`, its start command does not end; while there is a file `fail-KIND`, it fails.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = folder / "asked"
        self._path.touch()
        self.grants: list[JoinGrant] = []
        self.revoked: list[str] = []
        wait = f"while [ -e {folder}/wait-start ]; do sleep 0.02; done; "
        fail = f'[ ! -e "{folder}/fail-$FREEHOLD_MACHINE" ] || {{ echo no money >&2; exit 1; }}; '
        self.section = AutoscalerSection.model_validate(
            {
                "start": ("/bin/sh", "-c", self._write("begin") + wait + fail + self._write("start")),
                "stop": ("/bin/sh", "-c", self._write("stop")),
                "machines": {"small": {"max": 2, "labels": {"region": "home"}}, "big": {"max": 1}},
            }
        )

    def _write(self, do: str) -> str:
        return f'echo {do} "$FREEHOLD_MACHINE" "$FREEHOLD_NODE" >> {self._path}; '

    def list_begun(self) -> list[str]:
        return [line for line in self._path.read_text().splitlines() if line.startswith("begin")]

    def list_asked(self) -> list[str]:
        """What is done."""
        return [line for line in self._path.read_text().splitlines() if not line.startswith("begin")]

    def make_code(self, grant: JoinGrant | None = None) -> str:
        assert grant is not None
        self.grants.append(grant)
        return "code"

    def revoke_codes(self, name: str) -> None:
        self.revoked.append(name)


@contextlib.asynccontextmanager
async def running(tmp_path: Path) -> AsyncIterator[tuple[Autoscaler, Provider, SilentHead]]:
    head, provider = SilentHead(tmp_path), Provider(tmp_path)
    autoscaler = Autoscaler(head.folder, provider.section, head.head, provider, os.environ)
    task = asyncio.create_task(autoscaler.run())
    await asyncio.sleep(0)  # it has its tasks now
    try:
        yield autoscaler, provider, head
    finally:
        assert not task.done(), "the head has ended"
        task.cancel()
        await asyncio.wait({task})
        for lease in head.head.leases.values():
            lease.close()


async def test_ray_gets_no_machine_beyond_the_limit_and_none_of_another_kind(tmp_path: Path) -> None:
    async with running(tmp_path) as (autoscaler, provider, _):
        launch = {"do": "launch", "kind": "small", "request": "r1"}
        assert "may come" in autoscaler.answer({**launch, "count": 3})["error"]
        assert "no kind of machine 'large'" in autoscaler.answer({**launch, "kind": "large", "count": 1})["error"]
        assert "no kind" in autoscaler.answer({**launch, "count": 0})["error"]
        assert autoscaler.answer({**launch, "count": 2}) == {}
        assert "2 machines of the kind small are there" in autoscaler.answer({**launch, "count": 1})["error"]
        await until(lambda: len(provider.list_asked()) == 2)
        listed = autoscaler.answer({"do": "list"})["machines"]
        assert [(one["kind"], one["request"]) for one in listed] == [("small", "r1")] * 2
        assert sorted(grant.name for grant in provider.grants) == sorted(one["name"] for one in listed)
        assert provider.grants[0].labels == {"region": "home"}


async def test_a_machine_with_computers_is_drained_and_not_ended_and_nodes_of_the_owner_are_left_alone(
    tmp_path: Path,
) -> None:
    kept = [{"name": "shed", "kind": "small", "request": "", "state": "joined", "trouble": ""}]
    (tmp_path / "fleet").mkdir(mode=0o700)
    (tmp_path / "fleet" / "machines.json").write_text(json.dumps(kept))
    async with running(tmp_path) as (autoscaler, provider, head):
        lease = head.add_computer("busy")
        assert autoscaler.answer({"do": "terminate", "name": "shed"}) == {"error": "1 computers are on shed"}
        await until(lambda: head.head.known["shed"].is_draining)
        assert autoscaler.answer({"do": "terminate", "name": "attic"}) == {}
        assert provider.list_asked() == []
        head.head.forget(lease)
        assert autoscaler.answer({"do": "terminate", "name": "shed"}) == {}
        await until(lambda: autoscaler.answer({"do": "list"}) == {"machines": []})
        assert provider.list_asked() == ["stop small shed"]
        assert set(head.folder.read_nodes()) == {"attic"}


async def test_a_machine_that_had_not_joined_when_the_head_ended_is_let_go_by_the_next(tmp_path: Path) -> None:
    kept = [{"name": "small-7", "kind": "small", "request": "r", "state": "starting", "trouble": ""}]
    (tmp_path / "fleet").mkdir(mode=0o700)
    (tmp_path / "fleet" / "machines.json").write_text(json.dumps(kept))
    async with running(tmp_path) as (autoscaler, provider, _):
        await until(lambda: provider.list_asked() == ["stop small small-7"])
        assert [one["name"] for one in autoscaler.answer({"do": "list"})["machines"]] == ["small-7"]
        await until(lambda: not autoscaler.machines)
