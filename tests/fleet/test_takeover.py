"""A node that was taken over: its root reads all it can, and runs code wherever Ray lets it."""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.fleet.fleet_work import NODES, SMALL, find_process, remote
from tests.support.fleet import RunningFleet
from tests.support.processes import find_descendants

from freehold.computer import Computer
from freehold.computer.contract.spec import MIB

RAY_UID = 64244


THEFT = """
import json, os, sys
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On
address, own, wanted = sys.argv[1], sys.argv[2], sys.argv[3:]
ray.init(address=address, _node_ip_address=own, _temp_dir="/run/ray/session", log_to_driver=False, logging_level="ERROR")
@ray.remote(num_cpus=0, memory=0)
def steal(paths):
    found = {"uid": os.getuid(), "read": [], "processes": len([p for p in os.listdir("/proc") if p.isdigit()])}
    for path in paths:
        try:
            found["read"].append([path, os.listdir(path) if os.path.isdir(path) else open(path).read(40)])
        except OSError:
            pass
    return found
for node in ray.nodes():
    if node["Alive"]:
        where = On(node["NodeID"], soft=False)
        print(json.dumps([node["NodeManagerAddress"], ray.get(steal.options(scheduling_strategy=where).remote(wanted))]), flush=True)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="a node is taken over by its root")
async def test_root_of_a_node_finds_no_key_and_no_other_computer(fleet: RunningFleet, tmp_path: Path) -> None:
    """It reads every file and the memory of every process of its node, and runs code wherever Ray lets it."""
    secrets = {
        "key of the head": json.loads((fleet.home.root / "fleet" / "head.json").read_text())["key"].splitlines()[1],
        "authority": json.loads((fleet.home.root / "fleet" / "ray-authority.json").read_text())["key"].splitlines()[1],
    }
    (fleet.home.root / "vault-of-the-test").write_text("canary-in-the-home")
    async with contextlib.AsyncExitStack() as stack:
        on_nodes: dict[str | None, Computer] = {}
        while len(on_nodes) < 2:  # Ray may put two on one node, and then no more than it holds
            computer = await stack.enter_async_context(Computer.start(on=fleet.place, limits=SMALL))
            on_nodes[remote(computer).node] = computer
        mine, theirs = on_nodes.pop("node-0"), on_nodes.popitem()[1]
        await mine.files.write("file", b"canary-of-this-computer")
        await theirs.files.write("file", b"canary-of-the-other-computer")
        secrets |= {"home": "canary-in-the-home", "other": "canary-of-the-other-computer"}
        seen = read_all_of_node(fleet, "node-0")
        assert b"canary-of-this-computer" in seen  # the search works
        assert [name for name, secret in secrets.items() if secret.encode() in seen] == []
        for address, found in await run_by_ray(
            fleet, "node-0", [str(fleet.home.root), str(fleet.home.run), str(fleet.folder)]
        ):
            assert found["read"] == [], f"Ray at {address} can read {found['read']}"
            assert found["processes"] < 40


def read_all_of_node(fleet: RunningFleet, name: str) -> bytes:
    seen: list[bytes] = []
    for path in (fleet.folder / name).rglob("*"):
        if path.is_file() and not path.is_symlink():
            seen.append(path.read_bytes())
    for pid in [fleet.nodes[name].pid, *find_descendants(fleet.nodes[name].pid)]:
        with contextlib.suppress(OSError):
            seen.append(Path(f"/proc/{pid}/environ").read_bytes())
            seen.append(read_memory(pid))
    return b"\n".join(seen)


def read_memory(pid: int) -> bytes:
    """What is writable in the memory of a process: keys and messages are nowhere else."""
    seen: list[bytes] = []
    maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        for line in maps:
            place, modes, *_ = line.split()
            start, end = (int(word, 16) for word in place.split("-"))
            if modes.startswith("rw") and end - start < 64 * MIB:
                with contextlib.suppress(OSError, ValueError, OverflowError):
                    memory.seek(start)
                    seen.append(memory.read(end - start))
    return b"".join(seen)


async def run_by_ray(fleet: RunningFleet, name: str, paths: list[str]) -> list[tuple[str, dict[str, Any]]]:
    """With the token and the key of the node, as one of its own programs."""
    pid = find_process(fleet, name, "raylet/raylet")
    environment = dict(
        word.split("=", 1) for word in Path(f"/proc/{pid}/environ").read_text().split("\0") if "=" in word
    )
    settings = json.loads((fleet.folder / name / "node.json").read_text())
    words = ["nsenter", "-t", str(pid), "-m", "-p", "--", "setpriv", f"--reuid={RAY_UID}", f"--regid={RAY_UID}"]
    words += ["--clear-groups", sys.executable, "-c", THEFT, settings["ray_head"], settings["address"], *paths]
    done = await asyncio.to_thread(
        subprocess.run, words, capture_output=True, text=True, check=False, timeout=90, env=environment
    )
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert len(found) == NODES + 1, done.stderr[-3000:]
    return [(address, result) for address, result in found]
