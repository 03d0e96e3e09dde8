"""What the side door's tests share."""

from collections.abc import Iterator

import pytest
from tests.ssh.standing import Key, Standing, standing


@pytest.fixture(scope="session")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standing]:
    with standing(tmp_path_factory.mktemp("door")) as found:
        yield found


@pytest.fixture(scope="session")
def key(door: Standing) -> Key:
    """A client whom the owner let in."""
    return door.issue()
