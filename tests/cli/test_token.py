import json
import subprocess
import sys
from pathlib import Path

import pytest

from freehold.cli.token import read_expiry
from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.identity.tokens import ApiTokens
from freehold.timeline import Timeline

NOW = 1_800_000_000.0


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(root=tmp_path, run=tmp_path / "run")


def run(home: Home, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "freehold.cli.main", "token", *words, "--home", str(home.root)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_token_is_printed_once_listed_and_revoked(home: Home) -> None:
    made = run(home, "create", "backup", "--scope", "read", "--scope", "files", "--expires", "30d")
    secret = made.stdout.strip()
    with ApiTokens(home.identity) as tokens:
        found = tokens.verify(secret)
        assert found is not None
        assert found.scopes == {"read", "files"}
    listed = run(home, "list")
    assert "backup  files read  expires" in listed.stdout
    assert secret not in listed.stdout + made.stderr
    assert json.loads(run(home, "list", "--json").stdout)[0]["used"] is not None
    assert run(home, "revoke", "backup").returncode == 0
    with ApiTokens(home.identity) as tokens:
        assert tokens.verify(secret) is None
    with Timeline(home.timeline) as timeline:
        kinds = [event.kind for event in timeline.read()]
    assert kinds == ["identity.token_created", "identity.token_revoked"]
    assert secret.encode() not in home.timeline.read_bytes()


def test_mistakes_are_explained(home: Home) -> None:
    assert run(home, "create", "a", "--scope", "root").returncode == 2
    assert run(home, "create", "a").returncode == 2
    assert "token.unknown" in run(home, "revoke", "a").stderr
    assert "home.missing" in run(Home(home.root / "none", home.run), "list").stderr
    assert not (home.root / "none").exists()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("30d", NOW + 30 * 86_400), ("12h", NOW + 43_200), ("90m", NOW + 5400), ("2w", NOW + 1_209_600), ("never", None),
     ("2027-01-31", 1_801_439_999), ("2027-01-31T00:00:00", 1_801_353_600), ("2027-01-31T00:00:00+01:00", 1_801_350_000)],
)  # fmt: skip
def test_an_expiry_is_a_duration_a_date_or_never(text: str, expected: float | None) -> None:
    assert read_expiry(text, NOW) == expected


@pytest.mark.parametrize("text", ["", "0d", "-1d", "30", "1y", "999999d", "tomorrow", "2027-13-01"])
def test_other_expiries_are_refused(text: str) -> None:
    with pytest.raises(FreeholdError, match=r"token\.expiry"):
        read_expiry(text, NOW)
