"""What the manifest says about credentials is refused where it could mean more than one thing."""

from pathlib import Path

import pytest

from freehold.credentials.checks import find_mistakes
from freehold.credentials.section import CredentialSection
from freehold.credentials.settings import read_credentials
from freehold.manifest import load_manifest

GOOD = {"host": "git.example.org", "secret": "secret:git"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("host", ""),
        ("host", "https://git.example.org"),
        ("host", "*.example.org"),
        ("host", "git.example.org/me"),
        ("host", "git.example.org:0"),
        ("host", "git.example.org:65536"),
        ("host", "GIT.example.org"),
        ("host", "git..example.org"),
        ("host", "-git.example.org"),
        ("host", "localhost"),
        ("host", "0177.0.0.1"),
        ("host", "1.2.3"),
        ("host", "owner@git.example.org"),
        ("host", "xn--a.example.org"),
        ("secret", ""),
        ("secret", "ghp_0123456789"),
        ("secret", "secret:../x"),
        ("paths", ("me",)),
        ("paths", ("/me/../x",)),
        ("paths", ("/me/..",)),
        ("paths", ("/%6de",)),
        ("paths", ("/me?x",)),
        ("paths", ("",)),
        ("methods", ("get",)),
        ("methods", ("GET POST",)),
        ("header", "Host"),
        ("header", "Proxy-Authorization"),
        ("header", "Content-Length"),
        ("header", "X: y"),
        ("user", "a:b"),
        ("env", ("PATH",)),
        ("env", ("LD_PRELOAD",)),
        ("env", ("https_proxy",)),
        ("env", ("GIT_SSH_COMMAND",)),
        ("scope", "@me"),
    ],
)
def test_a_credential_with_two_meanings_is_refused(key: str, value: object) -> None:
    assert list(find_mistakes("x", CredentialSection.model_validate({**GOOD, key: value})))


@pytest.mark.parametrize("host", ["git.example.org", "git.example.org:8443", "192.168.1.7:3000", "a-b.c1.example"])
def test_every_host_that_is_accepted_can_be_used(tmp_path: Path, host: str) -> None:
    manifest = tmp_path / "freehold.toml"
    manifest.write_text(
        f'[credentials.x]\nhost = "{host}"\nsecret = "secret:git"\npaths = ["/me/notes.git"]\nenv = ["GH_TOKEN"]\n'
        'tools = ["git", "npm"]\nscope = "@me"\n'
    )
    loaded = load_manifest(manifest, {})
    assert loaded.manifest is not None
    assert not [one for one in loaded.problems if "credentials" in str(one)]
    (credential,) = read_credentials(loaded.manifest)
    assert credential.authority == host
