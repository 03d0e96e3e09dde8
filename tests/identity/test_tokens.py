import subprocess
import sys
from pathlib import Path

import pytest

from freehold.errors import FreeholdError
from freehold.identity.sign_ins import SignIns
from freehold.identity.tokens import MAX_TOKENS, SCOPES, ApiTokens

OWNER = "did:plc:ewvi7nxzyoun6zhxrhs64oiz"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "vault" / "identity.db"


@pytest.fixture
def now() -> list[float]:
    return [1_800_000_000.0]


@pytest.fixture
def tokens(path: Path, now: list[float]) -> ApiTokens:
    return ApiTokens(path, owner=OWNER, clock=lambda: now[0])


def test_a_token_is_shown_once_and_stored_hashed(tokens: ApiTokens, path: Path) -> None:
    token, secret = tokens.create("backup", ["read", "files"], None)
    assert secret.startswith("fh_")
    assert secret not in repr(tokens.list())
    assert secret.encode() not in b"".join(file.read_bytes() for file in path.parent.iterdir())
    found = tokens.verify(secret)
    assert found is not None
    assert found.id == token.id


def test_a_scope_allows_only_itself_and_admin_allows_all(tokens: ApiTokens) -> None:
    narrow, _ = tokens.create("narrow", ["read"], None)
    wide, _ = tokens.create("wide", ["admin"], None)
    assert [scope for scope in SCOPES if narrow.allows(scope)] == ["read"]
    assert all(wide.allows(scope) for scope in SCOPES)


def test_a_token_expires(tokens: ApiTokens, now: list[float]) -> None:
    token, secret = tokens.create("short", ["read"], now[0] + 10)
    now[0] += 9
    assert tokens.verify(secret) is not None
    now[0] += 1
    assert tokens.verify(secret) is None
    assert not tokens.is_active(token.id)
    assert [listed.name for listed in tokens.list()] == ["short"]


def test_last_use_is_shown(tokens: ApiTokens, path: Path, now: list[float]) -> None:
    _, secret = tokens.create("used", ["read"], None)
    assert tokens.list()[0].used is None
    tokens.verify(secret)
    with ApiTokens(path, owner=OWNER) as other:
        assert other.list()[0].used == now[0]


def test_a_revoked_token_is_refused_at_the_next_call_of_every_process(tokens: ApiTokens, path: Path) -> None:
    token, secret = tokens.create("gone", ["read"], None)
    assert tokens.verify(secret) is not None
    with SignIns(path) as sign_ins:
        before = sign_ins.revocation_count()
        script = "import sys, pathlib; from freehold.identity.tokens import ApiTokens; assert ApiTokens(pathlib.Path(sys.argv[1])).revoke('gone')"
        subprocess.run([sys.executable, "-c", script, str(path)], check=True)
        assert sign_ins.revocation_count() == before + 1
    assert tokens.verify(secret) is None
    assert not tokens.is_active(token.id)
    assert not tokens.revoke("gone")


def test_a_token_of_another_owner_is_not_valid(tokens: ApiTokens, path: Path) -> None:
    _, secret = tokens.create("old", ["admin"], None)
    with ApiTokens(path, owner=None) as other:
        assert other.verify(secret) is None


def test_the_secret_of_a_sign_in_is_not_a_token(tokens: ApiTokens, path: Path) -> None:
    with SignIns(path, owner=OWNER) as sign_ins:
        _, secret = sign_ins.create(OWNER, label="", address="", method="atproto")
        _, token = tokens.create("a", ["read"], None)
        assert tokens.verify(secret) is None
        assert sign_ins.verify(token) is None


@pytest.mark.parametrize("name", ["", "A", "a b", "../x", "-a", "a" * 41, "ä", "a\n"])
def test_an_unusual_name_is_refused(tokens: ApiTokens, name: str) -> None:
    with pytest.raises(FreeholdError, match=r"token\.name"):
        tokens.create(name, ["read"], None)


def test_invalid_scopes_and_expiries_are_refused(tokens: ApiTokens, now: list[float]) -> None:
    with pytest.raises(
        FreeholdError, match=r"Unknown scope: root.*\n.*read, prompt, files, terminal, history, .*, admin"
    ):
        tokens.create("a", ["read", "root"], None)  # type: ignore[list-item]
    with pytest.raises(FreeholdError, match=r"token\.scope"):
        tokens.create("a", [], None)
    with pytest.raises(FreeholdError, match=r"token\.expired"):
        tokens.create("a", ["read"], now[0])
    tokens.create("a", ["read"], None)
    with pytest.raises(FreeholdError, match=r"token\.exists"):
        tokens.create("a", ["read"], None)


def test_the_number_of_tokens_is_bounded(tokens: ApiTokens) -> None:
    for number in range(MAX_TOKENS):
        tokens.create(f"t{number}", ["read"], None)
    with pytest.raises(FreeholdError, match=r"token\.too-many"):
        tokens.create("more", ["read"], None)
