"""The lock files pin everything by hash and name no source, and advisories are compared with what is locked."""

import json
from pathlib import Path

import pytest
from tools.audit import find_foreign_sources, find_vulnerabilities, is_affected, main
from tools.generated.sbom import software_bill_of_materials
from tools.locks import LockFile, list_lock_files

HASH = "sha256:" + "0" * 64


def test_every_lock_file_pins_by_hash_and_names_no_source() -> None:
    for lock in list_lock_files():
        assert find_foreign_sources(lock) == []
        assert list(lock.packages()), lock.path


def write_lock(folder: Path, text: str) -> LockFile:
    path = folder / "some.lock"
    path.write_text(text)
    return LockFile(path, runs=True)


@pytest.mark.parametrize(
    "line", ["example==1.0", "example>=1.0 --hash=" + HASH, "git+https://example.org/x", "-e .", "./local"]
)
def test_a_package_that_is_not_pinned_by_hash_is_refused(tmp_path: Path, line: str) -> None:
    lock = write_lock(tmp_path, f"{line}\nother==2 \\\n    --hash={HASH}\n")
    with pytest.raises(ValueError, match="not a package pinned"):
        list(lock.packages())


def test_a_lock_that_names_a_source_is_found(tmp_path: Path) -> None:
    lock = write_lock(tmp_path, f"--index-url https://example.org/simple\nother==2 --hash={HASH}\n")
    assert find_foreign_sources(lock) == ["--index-url https://example.org/simple"]


def write_advisory(folder: Path, **more: object) -> None:
    affected = {
        "package": {"ecosystem": "PyPI", "name": "other"},
        "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "2.1"}]}],
    }
    (folder / "OSV-1.json").write_text(
        json.dumps({"id": "OSV-1", "summary": "It breaks", "affected": [affected]} | more)
    )


def test_a_locked_version_with_an_advisory_is_found(tmp_path: Path) -> None:
    advisories = tmp_path / "advisories"
    advisories.mkdir()
    lock = write_lock(tmp_path, f"Other==2.0 --hash={HASH}\nsafe==1 --hash={HASH}\n")
    write_advisory(advisories)
    (found,) = find_vulnerabilities([lock], advisories)
    assert (found.advisory, found.package.name, found.summary) == ("OSV-1", "other", "It breaks")
    write_advisory(advisories, withdrawn="2026-01-01T00:00:00Z")
    assert find_vulnerabilities([lock], advisories) == []


@pytest.mark.parametrize(
    ("version", "events", "affected"),
    [
        ("1.0", [{"introduced": "0"}], True),
        ("1.0", [{"introduced": "1.1"}], False),
        ("1.2", [{"introduced": "1.1"}, {"fixed": "1.2"}], False),
        ("1.2", [{"introduced": "1.1"}, {"last_affected": "1.2"}], True),
        ("1.10", [{"introduced": "0"}, {"fixed": "1.9"}, {"introduced": "1.10"}, {"fixed": "1.11"}], True),
        ("1.9.1", [{"introduced": "0"}, {"fixed": "1.9"}, {"introduced": "1.10"}], False),
        ("not-a-version", [{"introduced": "0"}], True),
    ],
)
def test_a_range_of_versions_is_read_as_osv_defines_it(
    version: str, events: list[dict[str, str]], affected: bool
) -> None:
    assert is_affected(version, {"ranges": [{"type": "ECOSYSTEM", "events": events}]}) == affected


def test_an_audit_fails_on_a_vulnerable_package_and_says_what_it_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([]) == 0
    assert "not compared with advisories" in capsys.readouterr().out
    (package, *_) = list_lock_files()[0].packages()
    affected = {"package": {"ecosystem": "PyPI", "name": package.name}, "versions": [package.version]}
    (tmp_path / "a.json").write_text(json.dumps({"id": "OSV-2", "affected": [affected]}))
    assert main(["--advisories", str(tmp_path)]) == 1
    assert "OSV-2" in capsys.readouterr().err


def test_the_bill_of_materials_has_every_package_that_runs() -> None:
    bill = json.loads(software_bill_of_materials())
    listed = {component["purl"] for component in bill["components"]}
    expected = {package.purl for lock in list_lock_files() if lock.runs for package in lock.packages()}
    assert listed == expected
    assert len(listed) == len(bill["components"])
