"""`freehold init` on the command line."""

import stat
import tomllib
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from freehold.cli.init import command
from freehold.errors import FreeholdError
from freehold.manifest import load_manifest

DID = "did:plc:ewvi7nxzyoun6zhxrhs64oiz"
PATH = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OWNER_DID", "PUBLIC_URL", "ATPROTO_SERVICE", "SANDBOX_HOST", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def init(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(command, ["--home", str(home), *arguments], catch_exceptions=True)


def test_it_writes_a_manifest_that_passes_its_own_check(home: Path) -> None:
    result = init(home)
    assert result.exit_code == 0, result.output
    path = home / "freehold.toml"
    assert load_manifest(path, PATH).problems == ()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert "freehold up" in result.output


def test_a_did_is_written_without_a_lookup(home: Path) -> None:
    assert init(home, "--owner", DID).exit_code == 0
    assert load_manifest(home / "freehold.toml", PATH).manifest.owner.did == DID


def test_a_handle_is_resolved_once_and_written_as_a_did(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str | None, str]] = []

    def resolve(handle: str, *, service: str | None = None, plc_url: str = "") -> str:
        asked.append((handle, service, plc_url))
        return DID

    monkeypatch.setattr("freehold.identity.atproto.resolver.resolve_handle", resolve)
    monkeypatch.setenv("ATPROTO_SERVICE", "https://pds.example.com")
    result = init(home, "--owner", "@Alice.example.com")
    assert result.exit_code == 0, result.output
    assert asked == [("alice.example.com", "https://pds.example.com", "https://plc.directory")]
    owner = tomllib.loads((home / "freehold.toml").read_text())["owner"]
    assert owner == {"did": DID, "handle": "alice.example.com"}


def test_a_handle_that_does_not_resolve_writes_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(handle: str, *, service: str | None = None, plc_url: str = "") -> str:
        raise FreeholdError("identity.unknown-handle", f"Nobody is {handle}", hint="Is it spelled right?")

    monkeypatch.setattr("freehold.identity.atproto.resolver.resolve_handle", resolve)
    result = init(home, "--owner", "alice.example.com")
    assert isinstance(result.exception, FreeholdError)
    assert not home.exists()


@pytest.mark.parametrize(
    "owner", ["alice", "did:plc:short", "did:key:z6Mk", "https://alice.example.com", "a b", "alice.local"]
)
def test_an_invalid_identity_is_refused_and_writes_nothing(home: Path, owner: str) -> None:
    result = init(home, "--owner", owner)
    assert isinstance(result.exception, FreeholdError)
    assert result.exception.code == "manifest.bad-owner"
    assert not home.exists()


def test_an_existing_manifest_is_not_changed(home: Path) -> None:
    home.mkdir(mode=0o700)
    path = home / "freehold.toml"
    path.write_text("# mine\n")
    result = init(home)
    assert isinstance(result.exception, FreeholdError)
    assert result.exception.code == "manifest.exists"
    assert path.read_text() == "# mine\n"


def test_with_owner_only_the_owner_in_the_manifest_changes(home: Path) -> None:
    home.mkdir(mode=0o700)
    path = home / "freehold.toml"
    path.write_text('# mine\n[owner]\nhandle = "old.example.com" # before\n[gateway]\nport = 3001 # taken\n')
    assert init(home, "--owner", DID).exit_code == 0
    assert tomllib.loads(path.read_text()) == {"owner": {"did": DID}, "gateway": {"port": 3001}}
    assert "# mine" in path.read_text()
    assert "# taken" in path.read_text()


def test_force_writes_a_new_manifest_and_keeps_the_old_one(home: Path) -> None:
    home.mkdir(mode=0o700)
    path = home / "freehold.toml"
    path.write_text("# mine\n")
    assert init(home, "--force").exit_code == 0
    assert load_manifest(path, PATH).problems == ()
    assert (home / "freehold.toml.old").read_text() == "# mine\n"


def test_a_home_of_another_user_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "home").symlink_to(tmp_path / "real")
    result = init(tmp_path / "home")
    assert isinstance(result.exception, FreeholdError)
    assert list((tmp_path / "real").iterdir()) == []


def test_help_has_an_example() -> None:
    context = click.Context(command)
    assert "freehold init --owner alice.bsky.social" in command.get_help(context)
