"""The index of the ACP registry is read, not trusted, and an agent of it becomes a description in the manifest."""

import json
from contextlib import nullcontext, suppress
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
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
    entry("epsilon", uvx={"package": "epsilon@0.5.10", "args": ["--acp"]}),
    entry("gamma", binary={"plan9-mips": {"archive": "https://x/g.tar.gz", "cmd": "./gamma"}}),
    entry("delta", npx={"package": "delta"}),
]
INDEX = json.dumps({"version": "1.0.0", "agents": AGENTS}).encode()


def test_packages_become_descriptions_and_the_rest_says_why_not() -> None:
    found = {one.id: one for one in read_registry(INDEX)}
    assert found["alpha"].list_keys() == {
        "agents.alpha.package": "npm:@x/alpha@1.2.3",
        "agents.alpha.command": ["alpha", "--acp"],
        "agents.alpha.env.ALPHA": "1",
    }
    assert list(found["beta"].list_keys().values()) == ["pypi:beta-agent[acp]==4.5.6", ["beta-acp", "serve"]]
    assert list(found["epsilon"].list_keys().values()) == ["pypi:epsilon==0.5.10", ["epsilon", "--acp"]]
    assert (found["gamma"].package, found["delta"].package) == ("", "")
    assert "no program for this kind of machine" in found["gamma"].why
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
        {"package": "x@1.0.0", "env": {"A": "shown\x1b[8mhidden"}},
        {"package": "x@1.0.0", "env": {"A": "x" * 501}},
        {"package": "x@1.0.0", "env": {f"A{number}": "" for number in range(51)}},
    ],
)
def test_an_entry_that_wants_more_than_a_package_is_not_offered(way: dict[str, Any]) -> None:
    (found,) = read_registry(json.dumps({"agents": [entry("x", npx=way)]}).encode())
    assert found.package == ""


@pytest.mark.parametrize("package", ["x", "x@latest", "x==1.0; evil", "x@1.0 evil==2", "x @ https://evil/x.whl"])
def test_a_package_of_pypi_without_one_version_is_not_offered(package: str) -> None:
    (found,) = read_registry(json.dumps({"agents": [entry("x", uvx={"package": package})]}).encode())
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


def add_from_index(home: Home, name: str, way: dict[str, Any], *options: str, answer: str = "") -> Result:
    index = home.root.parent / "registry.json"
    index.write_text(json.dumps({"agents": [entry(name, npx=way)]}))
    words = ["registry", str(index), name, "--home", str(home.root), *options]
    return CliRunner().invoke(command, words, input=answer)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    home = Home(tmp_path / "home", tmp_path / "run")
    home.root.mkdir(mode=0o700)
    home.manifest.write_text("")
    fake_npm(monkeypatch, home)
    return home


def test_what_would_run_is_shown_before_it_is_written(home: Home) -> None:
    way = {"package": "alpha@1.2.3", "args": ["--acp", "a b"], "env": {"ALPHA": "1"}}
    asked = add_from_index(home, "alpha", way, answer="n\n")
    assert "command  alpha --acp 'a b'" in asked.output
    assert "env      ALPHA=1" in asked.output
    assert home.manifest.read_text() == ""


def test_a_newer_version_changes_only_what_the_index_says(home: Home) -> None:
    mine = 'memory = [".alpha/sessions"]\nmode = "default"\n\n[agents.alpha.env]\nMINE = "1"\n'
    home.manifest.write_text(f'[agents.alpha]\npackage = "npm:alpha@1.0.0"\ncommand = "alpha"\n{mine}')
    added = add_from_index(home, "alpha", {"package": "alpha@1.2.3", "args": ["--acp"], "env": {"A": "2"}}, "--yes")
    assert added.exit_code == 0, added.output
    section = load_manifest(home.manifest, {}, home=home.root).manifest.agents.named["alpha"]
    assert (section.package, section.command) == ("npm:alpha@1.2.3", ("alpha", "--acp"))
    assert (section.memory, section.mode) == ((".alpha/sessions",), "default")
    assert section.env == {"MINE": "1", "A": "2"}


@pytest.mark.parametrize("name", ["builtin", "claude", "opencode", "default", "model"])
def test_an_index_takes_no_name_of_an_agent_that_freehold_knows_nor_of_a_setting(home: Home, name: str) -> None:
    refused = add_from_index(home, name, {"package": "evil@1.2.3"}, "--yes")
    assert isinstance(refused.exception, FreeholdError)
    assert home.manifest.read_text() == ""
    assert read_receipt(home, name) is None


@pytest.mark.parametrize("way", [{"args": ["--yolo"]}, {"env": {"AUTO_APPROVE": "1"}}])
def test_an_index_does_not_switch_asking_off(home: Home, way: dict[str, Any]) -> None:
    """Nor does it leave a manifest with which Freehold does not start."""
    way = {"package": "alpha@1.2.3", **way}
    refused = add_from_index(home, "alpha", way, "--yes")
    assert isinstance(refused.exception, FreeholdError)
    assert "unasked-agent" in refused.exception.hint
    assert home.manifest.read_text() == ""
    assert read_receipt(home, "alpha") is None
    home.manifest.write_text('[security.exceptions.unasked-agent]\nreason = "alpha"\n')
    allowed = add_from_index(home, "alpha", way, "--yes")
    assert allowed.exit_code == 0, allowed.output
