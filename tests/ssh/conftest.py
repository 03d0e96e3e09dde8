"""One SSH server for all tests."""

from collections.abc import Iterator

import pytest
from tests.ssh.ssh_server import ClientKey, SshServerProcess, run_ssh_server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServerProcess]:
    with run_ssh_server(tmp_path_factory.mktemp("ssh")) as found:
        yield found


@pytest.fixture(scope="session")
def key(server: SshServerProcess) -> ClientKey:
    """A client with a valid certificate."""
    return server.issue()
