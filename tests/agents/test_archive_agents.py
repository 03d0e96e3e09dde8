"""Agents whose program comes in an archive: locked by its hash, unpacked below their folder, and started inside alone."""

import hashlib
import io
import json
import platform
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.credentials.private_servers import serve_plain, serve_tls
from tests.egress.proxy_harness import make_authority

import freehold.builtin
from freehold.agents.catalogue import archive
from freehold.agents.catalogue.acp_registry import read_registry
from freehold.agents.catalogue.installation import find_problem, install_agent, read_receipt
from freehold.agents.catalogue.registry import find_agent
from freehold.agents.catalogue.trial import try_agent
from freehold.cli.agents import command
from freehold.computer import Computer, Mount
from freehold.computer.contract.conventions import AGENTS_PATH
from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.manifest import load_manifest

MACHINE = f"linux-{platform.machine()}"
BUILTIN = Path(freehold.builtin.__file__).parent
PROGRAM = b"#!/bin/sh\necho gamma runs with $1\n"


def make_tar(*members: tuple[str, bytes | None], **more: Any) -> bytes:
    """Files by their names; None makes an entry of the kind in `more`."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as packed:
        for name, content in members:
            entry = tarfile.TarInfo(name)
            entry.mode = 0o6755 if name.endswith("gamma") else 0o644
            if content is None:
                for key, value in more.items():
                    setattr(entry, key, value)
            else:
                entry.size = len(content)
            packed.addfile(entry, None if content is None else io.BytesIO(content))
    return made.getvalue()


def make_links(**targets: str) -> bytes:
    """Links in the folder `a/b`, by their names."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as packed:
        for name, target in targets.items():
            entry = tarfile.TarInfo(f"a/b/{name}")
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            packed.addfile(entry)
    return made.getvalue()


def make_zip(*members: tuple[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as packed:
        for name, content in members:
            packed.writestr(name, content)
    return made.getvalue()


GOOD = make_tar(("gamma-1.2.3/bin/gamma", PROGRAM), ("gamma-1.2.3/share/words.txt", b"tea"))


@dataclass
class ArchiveServer:
    """What is at each path; a text is an address to which it leads."""

    port: int = 0
    shown: dict[str, bytes | str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def url(self, path: str) -> str:
        return f"https://127.0.0.1:{self.port}{path}"


def make_handler(server: ArchiveServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            server.asked.append(self.path)
            found = server.shown.get(self.path)
            self.send_response(404 if found is None else 302 if isinstance(found, str) else 200)
            if isinstance(found, str):
                self.send_header("location", found)
            body = found if isinstance(found, bytes) else b""
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Silent."""

    return Handler


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ArchiveServer]:
    authority, server = make_authority(tmp_path, "127.0.0.1"), ArchiveServer()
    monkeypatch.setattr(archive, "trust_system", lambda: authority.client)
    with serve_tls(make_handler(server), authority.server) as server.port:
        yield server


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home", tmp_path / "run")
    home.root.mkdir(mode=0o700)
    home.manifest.write_text("# mine\n")
    return home


def entry(binary: object) -> dict[str, Any]:
    return {"id": "gamma", "name": "Gamma", "version": "1.2.3", "license": "MIT", "distribution": {"binary": binary}}


def add_from_index(home: Home, way: dict[str, Any], *options: str, answer: str = "") -> Result:
    index = home.root.parent / "registry.json"
    index.write_text(json.dumps({"agents": [entry({MACHINE: way})]}))
    words = ["registry", str(index), "gamma", "--home", str(home.root), *options]
    return CliRunner().invoke(command, words, input=answer)


def install(home: Home, url: str, data: bytes) -> None:
    package = f"archive:{url}#sha256={hashlib.sha256(data).hexdigest()}"
    home.manifest.write_text(f'[agents.gamma]\npackage = "{package}"\ncommand = "{AGENTS_PATH}/gamma/archive/gamma"\n')
    loaded = load_manifest(home.manifest, {}, home=home.root)
    assert loaded.errors == ()
    install_agent(home, find_agent(loaded.manifest, "gamma"))


def test_a_program_of_an_index_becomes_a_description() -> None:
    way = {"archive": "https://x.example/g.tar.gz", "cmd": "./bin/gamma", "args": ["--acp"], "env": {"A": "1"}}
    (plain,) = read_registry(json.dumps({"agents": [entry({MACHINE: way})]}).encode())
    assert plain.list_keys() == {
        "agents.gamma.package": "archive:https://x.example/g.tar.gz",
        "agents.gamma.command": [f"{AGENTS_PATH}/gamma/archive/bin/gamma", "--acp"],
        "agents.gamma.env.A": "1",
    }
    digest = "0123456789abcdef" * 4
    (pinned,) = read_registry(json.dumps({"agents": [entry({MACHINE: {**way, "sha256": digest.upper()}})]}).encode())
    assert pinned.package == f"archive:https://x.example/g.tar.gz#sha256={digest}"
    (other,) = read_registry(json.dumps({"agents": [entry({"windows-x86_64": way})]}).encode())
    assert (other.package, MACHINE in other.why) == ("", True)


@pytest.mark.parametrize(
    "change",
    [
        {"archive": "http://x.example/g.tar.gz"},
        {"archive": "https://me:secret@x.example/g.tar.gz"},
        {"archive": "https://x.example/g.tar.gz npm:evil@1.0.0"},
        {"archive": "https://x.example/g.tar.gz#sha256=" + "0" * 64},
        {"archive": 'https://x.example/g"\n[security]'},
        {"archive": "file:///etc/passwd"},
        {"cmd": "../../../bin/sh"},
        {"cmd": "/bin/sh"},
        {"cmd": "./.hidden/gamma"},
        {"cmd": "gamma --yolo"},
        {"cmd": None},
        {"sha256": "0" * 63},
        {"sha256": 7},
        {"args": ["a\nb"]},
        {"env": {"A=B": "1"}},
    ],
)
def test_an_entry_that_wants_more_than_a_program_of_an_archive_is_not_offered(change: dict[str, Any]) -> None:
    way = {"archive": "https://x.example/g.tar.gz", "cmd": "./gamma", **change}
    (found,) = read_registry(json.dumps({"agents": [entry({MACHINE: way})]}).encode())
    assert found.package == ""


async def test_it_is_added_with_the_hash_of_what_is_there_and_starts_inside(home: Home, server: ArchiveServer) -> None:
    """Releases lead to another address, which is followed."""
    server.shown = {"/gamma.tar.gz": "/releases/gamma.tar.gz", "/releases/gamma.tar.gz": GOOD}
    way = {"archive": server.url("/gamma.tar.gz"), "cmd": "./gamma-1.2.3/bin/gamma", "args": ["--acp"]}
    asked = add_from_index(home, way, answer="n\n")
    assert f"command  {AGENTS_PATH}/gamma/archive/gamma-1.2.3/bin/gamma --acp" in asked.output
    assert (home.manifest.read_text(), server.asked) == ("# mine\n", [])
    added = add_from_index(home, way, "--yes")
    assert added.exit_code == 0, added.output
    digest = hashlib.sha256(GOOD).hexdigest()
    assert server.asked == ["/gamma.tar.gz", "/releases/gamma.tar.gz"], "it is fetched once"
    loaded = load_manifest(home.manifest, {}, home=home.root)
    assert (loaded.errors, home.manifest.read_text().startswith("# mine\n")) == ((), True)
    agent = find_agent(loaded.manifest, "gamma")
    assert agent.package == f"archive:{server.url('/gamma.tar.gz')}#sha256={digest}"
    receipt = read_receipt(home, "gamma")
    assert receipt is not None
    assert receipt.lock == f"sha256:{digest}"
    assert find_problem(home, agent) is None
    program = home.agents / "gamma/archive/gamma-1.2.3/bin/gamma"
    assert stat.S_IMODE(program.stat().st_mode) == 0o755, "no bit that gives rights is kept"
    assert not (home.agents / ".cache").exists()
    async with Computer.start(mounts=[Mount(home.agents, AGENTS_PATH)]) as computer:
        done = await computer.run(list(agent.command))
        assert done.stdout == b"gamma runs with --acp\n"
        assert not (await computer.run(f"echo evil > {agent.command[0]}")).ok


async def test_an_agent_of_an_archive_takes_a_turn(home: Home, server: ArchiveServer) -> None:
    """The built-in agent, packed as somebody else would pack theirs."""
    sources = [
        (f"site/freehold/builtin/{one.relative_to(BUILTIN)}", one.read_bytes())
        for one in sorted(BUILTIN.rglob("*"))
        if one.suffix in (".py", ".json")
    ]
    start = b'#!/bin/sh\nPYTHONPATH="${0%/*}/site" exec /usr/bin/python3 -S -m freehold.builtin\n'
    server.shown["/g.tar.gz"] = make_tar(("gamma", start), ("site/freehold/__init__.py", b""), *sources)
    added = add_from_index(home, {"archive": server.url("/g.tar.gz"), "cmd": "./gamma"}, "--yes")
    assert added.exit_code == 0, added.output
    manifest = load_manifest(home.manifest, {}, home=home.root).manifest
    async with Computer.start(mounts=[Mount(home.agents, AGENTS_PATH)]) as computer:
        trial = await try_agent(computer, find_agent(manifest, "gamma"), manifest)
    assert trial.words == "The scripted model speaks"
    assert trial.asks


def test_what_is_not_what_was_locked_is_not_installed_and_the_old_one_stays(home: Home, server: ArchiveServer) -> None:
    good = make_tar(("gamma", PROGRAM))
    server.shown = {"/1.tar.gz": good, "/2.tar.gz": good + b"\0"}
    install(home, server.url("/1.tar.gz"), good)
    with pytest.raises(FreeholdError, match="another content than the one that is locked"):
        install(home, server.url("/2.tar.gz"), good)
    assert (home.agents / "gamma/archive/gamma").read_bytes() == PROGRAM
    receipt = read_receipt(home, "gamma")
    assert receipt is not None
    assert "/1.tar.gz" in receipt.package
    wrong = {"archive": server.url("/2.tar.gz"), "cmd": "gamma", "sha256": hashlib.sha256(good).hexdigest()}
    refused = add_from_index(home, wrong, "--yes")
    assert isinstance(refused.exception, FreeholdError)
    assert "another content" in refused.exception.message


def test_links_within_an_archive_stay(home: Home, server: ArchiveServer) -> None:
    data = make_links(gamma="../../gamma", folder="..", loop="loop", gone="nothing")
    server.shown["/g.tar.gz"] = data
    install(home, server.url("/g.tar.gz"), data)
    assert (home.agents / "gamma/archive/a/b/gamma").readlink() == Path("../../gamma")


def test_a_program_in_a_zip_can_be_started_although_a_zip_may_not_say_so(home: Home, server: ArchiveServer) -> None:
    data = make_zip(("gamma", b"\x7fELF and more"), ("words.txt", b"tea"))
    server.shown["/g.zip"] = data
    install(home, server.url("/g.zip"), data)
    folder = home.agents / "gamma/archive"
    assert stat.S_IMODE((folder / "gamma").stat().st_mode) == 0o755
    assert stat.S_IMODE((folder / "words.txt").stat().st_mode) == 0o644


def test_a_program_that_is_in_no_archive_has_the_name_of_its_address(home: Home, server: ArchiveServer) -> None:
    server.shown["/v1/gamma"] = b"\x7fELF and more"
    way = {"archive": server.url("/v1/gamma"), "cmd": "./gamma"}
    added = add_from_index(home, way, "--yes")
    assert added.exit_code == 0, added.output
    assert stat.S_IMODE((home.agents / "gamma/archive/gamma").stat().st_mode) == 0o755
    for name in ("..", "%2e%2e", "%2e%2e%2fevil", ""):
        server.shown[f"/v1/{name}"] = PROGRAM
        with pytest.raises(FreeholdError):
            install(home, server.url(f"/v1/{name}"), PROGRAM)
    assert not list(home.root.parent.rglob("evil"))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (make_tar(("../../evil", b"x")), "leads out"),
        (make_tar(("/etc/evil", b"x")), "leads out"),
        (make_zip(("../evil", b"x")), "leads out"),
        (make_tar(("passwd", None), type=tarfile.SYMTYPE, linkname="/etc/passwd"), "leads out"),
        (make_tar(("a/b", None), type=tarfile.SYMTYPE, linkname="../../evil"), "leads out"),
        (make_links(root="../..", out="root/../.."), "'a/b/out' leads out"),
        (make_tar(("disk", None), type=tarfile.BLKTYPE), "special file"),
        (make_tar(("pipe", None), type=tarfile.FIFOTYPE), "special file"),
        (make_tar(*((f"f{number}", b"x") for number in range(60))), "more than 50 entries"),
        (make_tar(("large", b"\0" * 3_000_000)), "larger than"),
        (GOOD[:100], "not a readable"),
        (b"neither an archive nor a program", "not a readable"),
    ],
)
def test_an_archive_that_leads_out_or_fills_the_disk_is_refused(
    home: Home, server: ArchiveServer, data: bytes, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MAX_ENTRIES", 50)
    monkeypatch.setattr(archive, "MAX_UNPACKED", 2_000_000)
    server.shown["/g.tar.gz"] = data
    with pytest.raises(FreeholdError, match=why) as caught:
        install(home, server.url("/g.tar.gz"), data)
    assert caught.value.code == "agent.install-failed"
    assert read_receipt(home, "gamma") is None
    assert not list(home.root.parent.rglob("evil"))
    assert not list(home.agents.glob(".new-*"))


def test_it_is_fetched_with_tls_only_and_not_without_end(
    home: Home, server: ArchiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MAX_ARCHIVE", 1000)
    plain = ArchiveServer(shown={"/g.tar.gz": GOOD})
    with serve_plain(make_handler(plain)) as port:
        server.shown = {
            "/plain": f"http://127.0.0.1:{port}/g.tar.gz",
            "/round": "/round",
            "/large": b"x" * 1001,
        }
        for path, why in (("/plain", "no TLS"), ("/round", "times"), ("/large", "larger"), ("/none", "404")):
            with pytest.raises(FreeholdError, match=why):
                install(home, server.url(path), GOOD)
    assert plain.asked == []
    monkeypatch.undo()
    with pytest.raises(FreeholdError, match="certificate"):
        install(home, server.url("/large"), GOOD)
    assert not list((home.agents / ".cache/archives").iterdir()), "nothing half is kept"


@pytest.mark.parametrize(
    "package",
    [
        "archive:https://x.example/g.tar.gz",
        f"archive:http://x.example/g.tar.gz#sha256={'0' * 64}",
        f"archive:https://x.example/g.tar.gz#sha256={'0' * 64} archive:https://x.example/h.tar.gz#sha256={'1' * 64}",
    ],
)
def test_the_manifest_takes_one_archive_with_tls_and_a_hash(home: Home, package: str) -> None:
    home.manifest.write_text(f'[agents.gamma]\npackage = "{package}"\ncommand = "gamma"\n')
    assert [one.code for one in load_manifest(home.manifest, {}, home=home.root).errors] == ["E503"]
