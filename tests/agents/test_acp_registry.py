"""The index of the ACP registry is read, not trusted, and an agent of it becomes a description in the manifest."""

import json
from contextlib import nullcontext, suppress
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.agents.test_installation import fake_npm
from tests.credentials.private_servers import serve_tls
from tests.egress.proxy_harness import FakeResolver, make_authority, run_proxy

from freehold.agents.catalogue.acp_registry import MAX_INDEX, choose_program, find_in_registry, read_registry
from freehold.agents.catalogue.installation import read_receipt
from freehold.agents.catalogue.registry import find_agent
from freehold.agents.catalogue.remote_registry import fetch_registry
from freehold.cli import _running_freehold
from freehold.cli.agents import command
from freehold.client.session_models import RegistryAgentInfo
from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.manifest import load_manifest


def entry(name: str, **ways: Any) -> dict[str, Any]:
    about = {"name": name.title(), "version": "1.2.3", "license": "MIT", "description": f"Does {name}."}
    return {"id": name, **about, "authors": ["A"], "icon": "https://x/y.svg", "distribution": ways}


AGENTS = [
    entry("alpha", npx={"package": "@x/alpha@1.2.3", "args": ["--acp"], "env": {"ALPHA": "1"}}),
    entry("beta", uvx={"package": "beta-agent[acp]==4.5.6", "cmd": "beta-acp", "args": ["serve"]}),
    entry("gamma", binary={"linux-x86_64": {"archive": "https://x/g.tar.gz", "cmd": "./gamma"}}),
    entry("delta", npx={"package": "delta"}),
]
INDEX = json.dumps({"version": "1.0.0", "agents": AGENTS}).encode()


def test_packages_become_descriptions_and_the_rest_says_why_not() -> None:
    found = {one.id: one for one in read_registry(INDEX)}
    assert found["alpha"].describe() == {
        "package": "npm:@x/alpha@1.2.3",
        "command": ["alpha", "--acp"],
        "env": {"ALPHA": "1"},
    }
    assert found["beta"].describe() == {"package": "pypi:beta-agent[acp]==4.5.6", "command": ["beta-acp", "serve"]}
    assert (found["gamma"].package, found["delta"].package) == ("", "")
    assert "without a hash" in found["gamma"].why
    assert "pinned" in found["delta"].why
    assert choose_program(found["alpha"], ["other"]) == "other"
    assert choose_program(found["alpha"], ["alpha", "other"]) == "alpha"
    for name, words in (("gamma", "cannot be added"), ("nobody", "no agent")):
        with pytest.raises(FreeholdError, match=words):
            find_in_registry(list(found.values()), name)


@pytest.mark.parametrize(
    "way",
    [
        {"package": "x@1.0.0; rm -rf /"},
        {"package": "x@1.0.0 npm:evil@1.0.0"},
        {"package": "https://evil/x.tgz"},
        {"package": "x@1.0.0", "args": ["a\nb"]},
        {"package": "x@1.0.0", "args": "--acp"},
        {"package": "x@1.0.0", "args": ["x"] * 100},
        {"package": "x@1.0.0", "cmd": "../../bin/sh"},
        {"package": "x@1.0.0", "env": {"A=B": "1"}},
        {"package": "x@1.0.0", "env": {"A": 1}},
    ],
)
def test_an_entry_that_wants_more_than_a_package_is_not_offered(way: dict[str, Any]) -> None:
    (found,) = read_registry(json.dumps({"agents": [entry("x", npx=way)]}).encode())
    assert found.package == ""


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"agents": {}}', b"[" * 100_000])
def test_what_is_no_index_is_refused(data: bytes) -> None:
    with pytest.raises(FreeholdError, match="not an index"):
        read_registry(data)


def test_malformed_entries_do_not_hide_others() -> None:
    odd: list[Any] = [
        None,
        3,
        {"id": "../x"},
        {"id": "y", "distribution": None},
        entry("z", npx={"package": "z@1.0.0"}),
    ]
    assert [one.id for one in read_registry(json.dumps({"agents": odd}).encode())] == ["z"]


class IndexHandler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/moved.json":
            self.send_response(302)
            self.send_header("location", "https://elsewhere.example/registry.json")
            self.end_headers()
            return
        body = INDEX if self.path == "/registry.json" else b" " * (MAX_INDEX + 1)
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        with suppress(OSError):  # who has read enough hangs up
            self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Silent."""


async def test_an_index_at_an_address_is_read_through_egress_and_the_host_is_allowed_for_this_alone(
    tmp_path: Path,
) -> None:
    authority, names = make_authority(tmp_path, "registry.example"), FakeResolver()
    names.set("registry.example", ["127.0.0.1"])
    with serve_tls(IndexHandler, authority.server) as port:
        url = f"https://registry.example:{port}"
        async with run_proxy(tmp_path, names=names) as proxy:
            found = await fetch_registry(proxy.egress, f"{url}/registry.json", who="owner", trust=authority.client)
            assert found == read_registry(INDEX)
            assert (await proxy.event("connection_allowed"))["target"] == f"registry.example:{port}"
            assert proxy.egress.status().rules == ()
            assert proxy.egress.credentials.sessions == frozenset()
            for path, code in (("moved.json", "registry.not-fetched"), ("long.json", "registry.too-big")):
                with pytest.raises(FreeholdError) as caught:
                    await fetch_registry(proxy.egress, f"{url}/{path}", who="owner", trust=authority.client)
                assert caught.value.code == code
            with pytest.raises(FreeholdError, match="certificate"):
                await fetch_registry(proxy.egress, f"{url}/registry.json", who="owner")
    assert set(names.asked) == {"registry.example"}


async def test_a_registry_whose_host_is_denied_is_not_asked(tmp_path: Path) -> None:
    names = FakeResolver()
    async with run_proxy(tmp_path, mode="allow", deny=["registry.example"], names=names) as proxy:
        with pytest.raises(FreeholdError) as caught:
            await fetch_registry(proxy.egress, "https://registry.example/registry.json", who="owner")
    assert caught.value.code == "registry.not-fetched"
    assert names.asked == []


@pytest.mark.parametrize(
    "url",
    ["http://registry.example/x", "https://me:secret@registry.example/x", "https://", "https://x:y/", "file:///x"],
)
async def test_an_address_that_somebody_could_change_on_the_way_is_refused(tmp_path: Path, url: str) -> None:
    async with run_proxy(tmp_path) as proxy:
        with pytest.raises(FreeholdError) as caught:
            await fetch_registry(proxy.egress, url, who="owner")
    assert caught.value.code == "registry.bad-address"


def test_the_command_asks_the_running_freehold_for_an_index_at_an_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    class StandInAgents:
        def read_registry(self, url: str) -> tuple[RegistryAgentInfo, ...]:
            asked.append(url)
            return tuple(RegistryAgentInfo.model_validate(asdict(one)) for one in read_registry(INDEX))

    class StandIn:
        agents = StandInAgents()

    monkeypatch.setattr(_running_freehold, "running_freehold", lambda *given: nullcontext(StandIn()))
    listed = CliRunner().invoke(command, ["registry", "https://x.example/i", "--home", str(tmp_path), "--json"])
    assert listed.exit_code == 0, listed.output
    assert {one["id"]: one["license"] for one in json.loads(listed.output)}["alpha"] == "MIT"
    assert asked == ["https://x.example/i"]


def test_an_agent_is_listed_with_version_and_licence_and_added_with_its_hashes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / "home", tmp_path / "run")
    home.root.mkdir(mode=0o700)
    home.manifest.write_text("# mine\n")
    index = tmp_path / "registry.json"
    index.write_bytes(INDEX)
    words = ["registry", str(index), "--home", str(home.root)]
    listed = CliRunner().invoke(command, words)
    assert listed.exit_code == 0, listed.output
    assert "alpha                    1.2.3        MIT" in listed.output
    fake_npm(monkeypatch, home)
    added = CliRunner().invoke(command, [*words, "alpha", "--yes"])
    assert added.exit_code == 0, added.output
    receipt = read_receipt(home, "alpha")
    assert receipt is not None
    assert receipt.lock.startswith("sha256:")
    agent = find_agent(load_manifest(home.manifest, {}, home=home.root).manifest, "alpha")
    assert agent.command == ("alpha", "--acp")
    assert home.manifest.read_text().startswith("# mine\n")
