"""`freehold doctor` reports what happened, and fails when an attempt proves nothing."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from freehold.cli.doctor import command
from freehold.computer import escapes
from freehold.computer.bubblewrap import requirements
from freehold.computer.bubblewrap.requirements import MissingRequirement
from freehold.computer.escapes import ESCAPES, EscapeAttempt

OPEN_DOOR = EscapeAttempt("open-door", "walks out of an open door", 'escaped("the door was open")')
BROKEN = EscapeAttempt("broken", "tells nothing", "raise KeyError(1)")


def test_every_attempt_is_reported_with_what_was_seen(tmp_path: Path) -> None:
    ran = CliRunner().invoke(command, ["--quick", "--json", "--home", str(tmp_path)])
    assert ran.exit_code == 0, ran.output
    told = json.loads(ran.stdout)
    assert told["ok"] is True
    assert [attempt["name"] for attempt in told["attempts"]] == [escape.name for escape in ESCAPES]
    assert {attempt["outcome"] for attempt in told["attempts"]} == {"refused"}
    assert told["isolation"]["limits"]["memory"] in ("cgroup v1", "cgroup v2", "watch")
    assert told["facts"]["kernel"].startswith("Linux ")


@pytest.mark.parametrize(("escape", "shown"), [(OPEN_DOOR, "the door was open"), (BROKEN, "KeyError: 1")])
def test_an_escape_and_an_attempt_that_told_nothing_both_fail(
    escape: EscapeAttempt, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(escapes, "ESCAPES", (escape,))
    ran = CliRunner().invoke(command, ["--quick", "--home", str(tmp_path)])
    assert ran.exit_code == 1
    assert "1 of 1 attempts were not refused" in ran.output
    assert shown in ran.output


def test_a_missing_wall_is_named_and_nothing_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = MissingRequirement(
        "user namespace", "AppArmor does not let bubblewrap make user namespaces", "add the profile"
    )
    monkeypatch.setattr(requirements, "find_missing_requirements", lambda: [missing])
    ran = CliRunner().invoke(command, ["--home", str(tmp_path)])
    assert ran.exit_code == 1
    assert "no user namespace: AppArmor" in ran.output
    assert "hint: add the profile" in ran.output
    assert "host-file" not in ran.output


def test_a_manifest_with_errors_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "freehold.toml").write_text("nonsense = 1\n")
    monkeypatch.setattr(escapes, "ESCAPES", ())
    ran = CliRunner().invoke(command, ["--quick", "--json", "--home", str(tmp_path)])
    assert ran.exit_code == 1
    assert "nonsense" in json.loads(ran.stdout)["manifest_errors"][0]
