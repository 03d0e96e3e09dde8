"""Connecting a provider puts its key into the vault and the rest into the manifest, and disconnecting takes both out."""

from pathlib import Path

import pytest

from freehold.egress.models.provider_setup import (
    ProviderDraft,
    choose_default_provider,
    connect_provider,
    default_provider,
    disconnect_provider,
)
from freehold.egress.vault import Vault
from freehold.errors import FreeholdError
from freehold.manifest import Manifest, load_manifest
from freehold.observe.secrets import Secret

KEY = Secret("sk-something-1234567890abcdef")
OAT = Secret("sk-ant-oat01-1234567890abcdef")


class SetupHome:
    def __init__(self, folder: Path) -> None:
        self.path = folder / "freehold.toml"
        self.vault = Vault(folder / "vault")

    @property
    def manifest(self) -> Manifest:
        loaded = load_manifest(self.path, {})
        assert loaded.errors == ()
        return loaded.manifest

    def connect(self, draft: ProviderDraft) -> Path:
        return connect_provider(self.path, self.manifest, self.vault, draft, {})

    def disconnect(self, name: str) -> Path:
        return disconnect_provider(self.path, self.manifest, self.vault, name, {})

    @property
    def secrets(self) -> list[str]:
        return [each.name for each in self.vault.list()]


@pytest.fixture
def home(tmp_path: Path) -> SetupHome:
    return SetupHome(tmp_path)


def test_the_key_is_in_the_vault_and_nowhere_else(home: SetupHome) -> None:
    home.connect(ProviderDraft("openai", "openai", "https://api.openai.com/v1/", KEY, "gpt-5"))
    model = home.manifest.models["openai"]
    assert (model.kind, model.key, model.base_url, model.model) == ("openai", "secret:openai", None, "gpt-5")
    assert home.vault.get("openai") == KEY
    assert KEY.reveal() not in home.path.read_text()


def test_a_provider_that_would_be_an_error_leaves_no_key_behind(home: SetupHome) -> None:
    with pytest.raises(FreeholdError) as refused:
        home.connect(ProviderDraft("far", "openai-compatible", "http://203.0.113.5/v1", KEY))
    assert "unencrypted" in refused.value.message
    assert (home.secrets, home.path.exists()) == ([], False)


def test_a_key_is_not_sent_to_another_host_by_someone_who_cannot_read_it(home: SetupHome) -> None:
    home.connect(ProviderDraft("mine", "openai-compatible", "https://llm.example.org/v1", KEY))
    home.connect(ProviderDraft("mine", "openai-compatible", "https://llm.example.org/v2", None, "other"))
    assert home.manifest.models["mine"].key == "secret:mine"
    for url in ("https://evil.example.net/v1", "http://llm.example.org/v1", "https://llm.example.org:8443/v1"):
        with pytest.raises(FreeholdError) as refused:
            home.connect(ProviderDraft("mine", "openai-compatible", url))
        assert refused.value.code == "models.key-needed"
    assert home.manifest.models["mine"].base_url == "https://llm.example.org/v2"
    home.connect(ProviderDraft("mine", "openai-compatible", "https://other.example.net/v1", KEY))


def test_disconnecting_removes_the_key_unless_another_provider_uses_it(home: SetupHome) -> None:
    home.connect(ProviderDraft("one", "openai", None, KEY, is_default=True))
    home.path.write_text(home.path.read_text() + '\n[models.two]\nkind = "openai"\nkey = "secret:one"\n')
    assert default_provider(home.manifest) == "one"
    home.disconnect("one")
    assert (home.secrets, [*home.manifest.models], home.manifest.agents.model) == (["one"], ["two"], None)
    home.disconnect("two")
    assert (home.secrets, [*home.manifest.models]) == ([], [])
    with pytest.raises(FreeholdError) as refused:
        home.disconnect("two")
    assert refused.value.code == "models.not-found"


CREDENTIAL = '[credentials.git]\nhost = "git.example.org"\nsecret = "secret:{name}"\n'


def test_a_secret_that_something_else_uses_is_neither_overwritten_nor_removed(home: SetupHome) -> None:
    """A credential for a host, and the key of a provider that happens to have its name."""
    home.path.write_text(CREDENTIAL.format(name="git-host"))
    home.vault.set("git-host", "the-token-of-git")
    home.connect(ProviderDraft("git-host", "openai", None, KEY))
    assert home.manifest.models["git-host"].key == "secret:git-host-2"
    assert home.vault.get("git-host-2") == KEY
    home.connect(ProviderDraft("git-host", "openai", None, Secret("sk-another-1234567890abcdef")))
    assert home.secrets == ["git-host", "git-host-2"]
    home.disconnect("git-host")
    assert home.secrets == ["git-host"]
    assert home.vault.get("git-host").reveal() == "the-token-of-git"


def test_a_key_that_a_credential_uses_stays_when_its_provider_is_disconnected(home: SetupHome) -> None:
    home.connect(ProviderDraft("one", "openai", None, KEY))
    home.path.write_text(home.path.read_text() + CREDENTIAL.format(name="one"))
    home.disconnect("one")
    assert home.vault.get("one") == KEY


def test_a_provider_that_an_agent_is_set_to_use_stays(home: SetupHome) -> None:
    home.connect(ProviderDraft("one", "anthropic", None, KEY))
    home.path.write_text(home.path.read_text() + '\n[agents.claude]\nmodel = "one"\n')
    with pytest.raises(FreeholdError) as refused:
        home.disconnect("one")
    assert "agents.claude.model" in refused.value.message
    assert home.secrets == ["one"]


def test_the_default_is_the_chosen_provider_or_else_the_first(home: SetupHome) -> None:
    assert default_provider(home.manifest) is None
    for name in ("one", "two"):
        home.connect(ProviderDraft(name, "openai", None, KEY))
    assert default_provider(home.manifest) == "one"
    choose_default_provider(home.path, home.manifest, "two", {})
    assert default_provider(home.manifest) == "two"


@pytest.mark.parametrize("name", ["", "a b", "a.b", "../x", "ü", "x" * 51, "-a"])
def test_a_name_that_cannot_be_in_an_address_is_refused(name: str, home: SetupHome) -> None:
    with pytest.raises(FreeholdError) as refused:
        home.connect(ProviderDraft(name, "openai", None, KEY))
    assert refused.value.code == "models.bad-name"


@pytest.mark.parametrize(
    "url", ["", "x", "http://", "http://[", "http://a:b/", "ftp://a.test", "http://u:p@a.test", "http://a.test/?q"]
)
def test_an_address_that_is_none_is_refused(url: str, home: SetupHome) -> None:
    with pytest.raises(FreeholdError) as refused:
        home.connect(ProviderDraft("x", "openai-compatible", url, KEY))
    assert refused.value.code == "models.bad-address"


@pytest.mark.parametrize("key", ["", " ", "two words", "two\nlines", "k\u00e9y", "a\0b"])
def test_a_key_that_cannot_be_in_a_header_is_refused(key: str, home: SetupHome) -> None:
    with pytest.raises(FreeholdError) as refused:
        home.connect(ProviderDraft("x", "openai", None, Secret(key)))
    assert refused.value.code == "models.bad-key"
    assert home.secrets == []


def test_a_subscription_goes_to_its_vendor_only(home: SetupHome) -> None:
    home.connect(ProviderDraft("claude-code", "anthropic", None, OAT, auth="claude-code"))
    model = home.manifest.models["claude-code"]
    assert (model.auth, model.base_url, model.address) == ("claude-code", None, "https://api.anthropic.com")
    for draft, code in (
        (ProviderDraft("x", "anthropic", "https://evil.example.net", OAT, auth="claude-code"), "models.bad-address"),
        (ProviderDraft("x", "openai", None, OAT, auth="claude-code"), "models.bad-address"),
        (ProviderDraft("x", "anthropic", None, KEY, auth="claude-code"), "models.bad-sign-in"),
        (ProviderDraft("x", "openai", None, KEY, auth="codex"), "models.bad-sign-in"),
    ):
        with pytest.raises(FreeholdError) as refused:
            home.connect(draft)
        assert refused.value.code == code
    assert home.secrets == ["claude-code"]
