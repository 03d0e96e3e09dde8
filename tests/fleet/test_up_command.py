"""`freehold fleet up`: a code with which a machine joins, the ports to open, and what a newcomer is told who is not ready."""

import asyncio
import json
import os
import re
import site
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.support.fleet import HEAD
from tests.support.ports import free_ports

import freehold
from freehold.fleet import cli, ray_inside
from freehold.fleet.client_door import ClientDoor
from freehold.fleet.fleet_folder import FleetFolder, KnownNode
from freehold.fleet.head import FleetHead
from freehold.fleet.head_commands import HeadCommands
from freehold.fleet.join_code import read_join_code
from freehold.fleet.join_door import JoinDoor
from freehold.fleet.join_request import NodeOffer, join_fleet
from freehold.fleet.place import SOCKET
from freehold.fleet.section import FleetSection
from freehold.home import Home, find_home

ENABLED = '[fleet]\nenabled = true\naddress = "{address}"\nport = {port}\n'


@dataclass
class Head:
    """A real head, without Ray. `joined` are the machines that have used a code."""

    home: Home
    port: int
    joined: list[KnownNode]


@pytest.fixture
async def head(home: Home) -> AsyncIterator[Head]:
    (port,) = free_ports(1)
    found = Head(home, port, [])
    folder = FleetFolder(home.root / "fleet")
    door = JoinDoor(folder, HEAD, port, port + 1, found.joined.append)
    fleet = FleetHead(folder.read_head(), {}, quota=0, save_every=30)
    clients = ClientDoor(fleet, "SPREAD", HeadCommands(fleet, folder, door).by_name())
    home.manifest.write_text(ENABLED.format(address=HEAD, port=port))
    async with door.serve(), clients.serve(home.run / SOCKET):
        yield found


@pytest.fixture
def home(tmp_path: Path) -> Home:
    found = find_home(tmp_path / "home")
    for folder in (found.root, found.run):
        folder.mkdir(parents=True, mode=0o700)
    return found


@pytest.fixture
def without_ray(tmp_path: Path) -> tuple[str, ...]:
    """Python as it is where `pip install freehold` was run: everything is installed, and Ray is not."""
    installed = tmp_path / "installed"
    installed.mkdir()
    (installed / "freehold").symlink_to(Path(freehold.__file__).parent)
    for path in (one for folder in site.getsitepackages() for one in Path(folder).iterdir()):
        if path.name not in ("freehold", "ray") and not path.name.startswith("ray-") and path.suffix != ".pth":
            (installed / path.name).symlink_to(path)
    return "env", f"PYTHONPATH={installed}", sys.executable, "-S"


def run(home: Home, *words: str, python: tuple[str, ...] = (sys.executable,)) -> "subprocess.CompletedProcess[str]":
    command = [*python, "-m", "freehold.cli.main", "fleet", *words]
    environment = {**os.environ, "FREEHOLD_HOME": str(home.root)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)


async def run_now(home: Home, *words: str, python: tuple[str, ...] = (sys.executable,)) -> Any:
    """While the head of this process answers."""
    return await asyncio.to_thread(run, home, *words, python=python)


async def join_with(code: str, name: str, folder: Path) -> None:
    await join_fleet(read_join_code(code), NodeOffer(name, "127.0.0.3", 7870, 0), folder)


async def test_a_machine_joins_with_the_code_that_is_shown(head: Head, tmp_path: Path) -> None:
    done = await run_now(head.home, "up")
    assert (done.returncode, done.stderr) == (0, "")
    (code,) = re.findall(r"^  freehold fleet join (\S+)$", done.stdout, re.MULTILINE)
    await join_with(code, "shed", tmp_path / "shed")
    assert [node.name for node in head.joined] == ["shed"]
    assert "within 15 minutes" in done.stdout


async def test_a_machine_joins_with_the_code_of_json_and_each_call_makes_another_one(
    head: Head, tmp_path: Path
) -> None:
    found = [json.loads((await run_now(head.home, "up", "--json")).stdout) for _ in range(2)]
    assert found[0]["code"] != found[1]["code"]
    for name, one in zip(("attic", "shed"), found, strict=True):
        assert set(one) == {"code", "open_ports"}
        await join_with(one["code"], name, tmp_path / name)
    assert [node.name for node in head.joined] == ["attic", "shed"]


async def test_the_same_ports_are_shown_to_people_and_to_programs(head: Head) -> None:
    shown, told = await run_now(head.home, "up"), json.loads((await run_now(head.home, "up", "--json")).stdout)
    lines = shown.stdout.partition("Open these ports, and no others:\n")[2]
    assert [line.strip() for line in lines.splitlines()] == told["open_ports"]
    assert told["open_ports"] == [
        f"{HEAD}:{head.port} to machines that join",
        f"{HEAD}:{head.port + 1}-{head.port + 52} to all nodes (Ray)",
        f"each node:7870 to {HEAD} (links and files)",
        f"each node:7871-7921 to {HEAD} and all nodes (Ray)",
    ]
    with head.home.manifest.open("a") as manifest:
        manifest.write("fixed_ports = false\n")
    free = json.loads((await run_now(head.home, "up", "--json")).stdout)["open_ports"]
    assert free[1] == f"{HEAD}:all (fixed_ports is false) to all nodes (Ray)"


@pytest.mark.parametrize("place", ["head", "node"])
def test_every_port_that_ray_is_given_is_among_those_to_open(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A port that is missing there is closed by the owner's firewall, and the node never comes."""
    section = FleetSection(enabled=True, address="10.0.0.5")
    started: list[list[str]] = []
    monkeypatch.setattr("freehold.fleet.ray_inside.subprocess.Popen", lambda words, **_: started.append(words))
    common: dict[str, Any] = {"address": "10.0.0.5", "folder": "/run/ray/session", "idle": 0, "machines": {}}
    if place == "head":
        ray_inside.start_ray({**common, "port": section.port + 1, "ports": section.port + 2})
    else:
        more = {"head": "10.0.0.5:7811", "cpus": 1, "memory": 2**30, "gpus": 0, "labels": {}, "instance": []}
        ray_inside.start_ray({**common, **more, "ports": cli.NODE_PORT + 1})
    given = [int(found) for word in started[0] for found in re.findall(r"-port=(\d+)$", word)]
    line = cli._list_ports(section)[1 if place == "head" else 3]
    first, last = map(int, re.findall(r":(\d+)-(\d+) ", line)[0])
    assert len(given) >= 7
    assert [port for port in given if not first <= port <= last] == []


def test_an_address_of_ipv6_and_its_port_are_told_apart() -> None:
    ports = cli._list_ports(FleetSection(enabled=True, address="fd00::5"))
    assert ports[0] == "[fd00::5]:7810 to machines that join"


@pytest.mark.parametrize("manifest", ["", "[fleet]\nenabled = false\n", '[fleet]\naddress = "10.0.0.5"\n'])
def test_a_fleet_that_is_not_switched_on_is_said_with_what_to_write(home: Home, manifest: str) -> None:
    home.manifest.write_text(manifest)
    for words in (("up",), ("up", "--json")):
        done = run(home, *words)
        assert (done.returncode, done.stdout) == (1, "")
        assert "fleet.disabled" in done.stderr
        assert 'Set enabled = true and address = "…" in [fleet] of freehold.toml, then: freehold up' in done.stderr


def test_a_freehold_that_does_not_run_is_said_with_how_to_start_it(home: Home) -> None:
    home.manifest.write_text(ENABLED.format(address=HEAD, port=7810))
    done = run(home, "up")
    assert (done.returncode, done.stdout) == (1, "")
    assert "fleet.not-running" in done.stderr
    assert "freehold up" in done.stderr


async def test_no_code_is_made_without_ray_and_how_to_install_it_is_said(
    head: Head, without_ray: tuple[str, ...], tmp_path: Path
) -> None:
    """On the head, and on the machine that joins: its code is good for another try."""
    for words in (("up",), ("up", "--json")):
        done = await run_now(head.home, *words, python=without_ray)
        assert (done.returncode, done.stdout) == (1, "")
        assert "fleet.no-ray" in done.stderr
        assert "-m pip install 'freehold[fleet]'" in done.stderr
    code = json.loads((await run_now(head.home, "up", "--json")).stdout)["code"]
    folder = tmp_path / "node"
    refused = await run_now(head.home, "join", code, "--folder", str(folder), python=without_ray)
    assert (refused.returncode, "fleet.no-ray" in refused.stderr, head.joined) == (1, True, [])
    await join_with(code, "shed", folder)
    assert [node.name for node in head.joined] == ["shed"]


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "8.8.8.8", "2001:4860:4860::8888", "my-server"])
def test_a_head_in_the_open_is_refused_with_its_line_and_does_not_start(home: Home, address: str) -> None:
    """An address that everybody reaches, or none: neither is a code made, nor does the head itself listen."""
    home.manifest.write_text(ENABLED.format(address=address, port=7810))
    head = subprocess.run(
        [sys.executable, "-m", "freehold.fleet", "--home", str(home.root)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    asked = run(home, "up")
    for done in (asked, head):
        assert (done.returncode, done.stdout) == (1, "")
        assert f"freehold.toml:3: fleet.address is {address}" in done.stderr.replace('"', "")
        assert "E781" in done.stderr


@pytest.mark.parametrize("missing", [*ray_inside.NEEDED, "RAY_AUTH_MODE", "RAY_USE_TLS"])
def test_the_program_of_ray_ends_without_its_certificates_before_it_listens(missing: str, tmp_path: Path) -> None:
    """Also when somebody starts it by hand."""
    keys = {name: str(tmp_path / name) for name in ray_inside.NEEDED}
    for path in keys.values():
        Path(path).touch()
    given = {**keys, "RAY_AUTH_MODE": "token", "RAY_USE_TLS": "1"}
    environment = {name: value for name, value in (os.environ | given).items() if name != missing}
    done = subprocess.run(
        [sys.executable, str(Path(ray_inside.__file__))],
        env=environment,
        input="",
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert "Ray is not started in the open" in done.stderr
