"""The version of an agent, read from the name of its package."""

import pytest

from freehold import __version__
from freehold.gateway.routes.agents import version_of


@pytest.mark.parametrize(
    ("package", "version"),
    [
        ("npm:@zed-industries/claude-code-acp@0.12.3", "0.12.3"),
        ("npm:opencode-ai@1.0.1", "1.0.1"),
        ("npm:@scope/name", "latest"),
        ("npm:name", "latest"),
        ("pypi:tiny-agent==1.0", "1.0"),
        ("pypi:tiny-agent", "latest"),
        ("pypi:freehold-builtin", __version__),
        (f"archive:https://x.example/gamma@1.2.tar.gz#sha256={'0123456789abcdef' * 4}", "0123456789ab"),
    ],
)
def test_a_package_names_its_version(package: str, version: str) -> None:
    assert version_of(package) == version
