"""The documents with which this Freehold identifies itself to an authorization server."""

import json
from urllib.parse import parse_qs, urlsplit

import pytest

from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.identity.atproto.oauth_client import OAuthClient, loopback_client, public_client
from freehold.identity.keys import client_key_path, ensure_client_key, read_client_key


def test_the_confidential_client_describes_itself(confidential: OAuthClient) -> None:
    """Checklist 29."""
    metadata, jwks = confidential.metadata(), confidential.jwks()
    assert metadata is not None
    assert jwks is not None
    assert metadata["client_id"] == "https://agent.honest.net/oauth/client-metadata.json"
    assert metadata["dpop_bound_access_tokens"] is True
    assert ("jwks" in metadata) != ("jwks_uri" in metadata)
    assert metadata["scope"] == "atproto"
    assert metadata["token_endpoint_auth_method"] == "private_key_jwt"
    assert '"d"' not in json.dumps(jwks)


def test_the_loopback_client_has_no_documents() -> None:
    """Checklist 30."""
    client = loopback_client(3000)
    parts = urlsplit(client.client_id)
    assert (parts.scheme, parts.netloc, parts.path) == ("http", "localhost", "")
    assert parse_qs(parts.query) == {"redirect_uri": ["http://127.0.0.1:3000/oauth/callback"], "scope": ["atproto"]}
    assert client.metadata() is None
    assert client.jwks() is None


@pytest.mark.parametrize(
    "url",
    ["http://agent.honest.net", "https://agent.honest.net:8443", "https://agent.honest.net/x", "https://u@agent.honest.net", "https://"],
)  # fmt: skip
def test_a_public_url_that_cannot_be_a_client_is_refused(home: Home, url: str) -> None:
    ensure_client_key(home)
    with pytest.raises(FreeholdError, match=r"identity\.public-url"):
        public_client(url, read_client_key(home))


def test_the_key_is_created_once_and_is_private(home: Home) -> None:
    ensure_client_key(home)
    first = read_client_key(home)
    ensure_client_key(home)
    assert read_client_key(home) == first
    assert client_key_path(home).stat().st_mode & 0o777 == 0o600
    assert [path.name for path in home.vault.iterdir()] == ["sign-in-key.pem"]


def test_a_key_that_others_could_read_is_refused(home: Home) -> None:
    ensure_client_key(home)
    client_key_path(home).chmod(0o644)
    with pytest.raises(FreeholdError, match=r"identity\.key-exposed"):
        ensure_client_key(home)


def test_a_planted_key_is_refused(home: Home) -> None:
    home.vault.mkdir(mode=0o700)
    (home.root / "elsewhere").write_text("x")
    client_key_path(home).symlink_to(home.root / "elsewhere")
    with pytest.raises(FreeholdError, match=r"identity\.key"):
        ensure_client_key(home)
