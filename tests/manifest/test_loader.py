"""One loader for everybody."""

from pathlib import Path

import pytest
from pydantic import ValidationError
from tests.manifest.machine import look

from freehold.errors import FreeholdError
from freehold.manifest import Manifest, load_manifest, require_manifest
from freehold.manifest.facts import MachineFacts
from freehold.ssh.section import SshSection

PATH = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}


def test_defaults_are_those_of_the_design() -> None:
    manifest = Manifest()
    assert (
        manifest.gateway.port,
        manifest.keeper.port,
        manifest.section(SshSection).port,
        manifest.observe.metrics_port,
    ) == (
        3000,
        8001,
        2222,
        9091,
    )
    assert {
        manifest.gateway.host,
        manifest.keeper.host,
        manifest.section(SshSection).host,
        manifest.observe.metrics_host,
    } == {"127.0.0.1"}
    assert manifest.egress.mode == "ask"
    assert manifest.history.folders == ("workspace", "home")
    assert manifest.history.quota is None
    assert manifest.agents.default == "builtin"
    assert manifest.section(SshSection).enabled is True
    assert {getattr(manifest.slots, name).mode for name in type(manifest.slots).model_fields} == {"off"}


def test_a_manifest_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Manifest().gateway.port = 1  # type: ignore[misc]


def test_a_missing_file_is_a_manifest_that_can_be_required(tmp_path: Path) -> None:
    loaded = require_manifest(tmp_path / "none" / "freehold.toml", PATH)
    assert loaded.manifest == Manifest()


def test_requiring_a_broken_one_names_every_error(tmp_path: Path) -> None:
    path = tmp_path / "freehold.toml"
    path.write_text("[gateway]\nprot = 1\n[keeper]\nport = 3000\n[ssh]\nlifetime = '48h'\n")
    with pytest.raises(FreeholdError) as caught:
        require_manifest(path, PATH)
    assert caught.value.code == "manifest.invalid"
    for words in ("2 errors", f"{path}:2", "E005", f"{path}:4", "E101"):
        assert words in caught.value.message
    assert "W701" not in caught.value.message
    assert "freehold check" in caught.value.hint


def test_warnings_do_not_stop(tmp_path: Path) -> None:
    path = tmp_path / "freehold.toml"
    path.write_text('[egress]\nmode = "allow"')
    assert [problem.code for problem in require_manifest(path, PATH).warnings] == ["W301"]


def test_checksum_is_of_what_holds_and_not_of_how_it_is_written() -> None:
    plain = look("[gateway]\nport = 3001")
    assert look("# a comment\ngateway = { port = 3001 }").checksum == plain.checksum
    assert look("", {"FREEHOLD_GATEWAY_PORT": "3001"}).checksum == plain.checksum
    assert look("").checksum != plain.checksum


def test_facts_are_of_this_machine(tmp_path: Path) -> None:
    facts = MachineFacts.gather(tmp_path / "not" / "yet", PATH)
    assert facts.memory > 0
    assert facts.cpus > 0
    assert facts.free_disk > 0
    assert set(facts.backends) == {"bubblewrap", "docker", "podman", "microvm", "attached"}
    assert facts.history_size() == 0


def test_facts_say_why_a_backend_cannot_run(tmp_path: Path) -> None:
    facts = MachineFacts.gather(tmp_path, {"PATH": str(tmp_path)})
    assert "not installed" in facts.backends["bubblewrap"]
    loaded = load_manifest(tmp_path / "freehold.toml", {"PATH": str(tmp_path)})
    assert [problem.code for problem in loaded.problems] == ["E201"]


def test_history_size_is_what_lies_there(tmp_path: Path) -> None:
    (tmp_path / "history" / "chunks").mkdir(parents=True)
    (tmp_path / "history" / "chunks" / "one").write_bytes(b"x" * 100_000)
    assert MachineFacts.gather(tmp_path).history_size() >= 100_000
