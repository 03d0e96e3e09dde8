"""Three whole Freeholds and a foreign relay, each in a network namespace of its own, with TLS between them."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.shared_processes


def test_freeholds_of_other_networks_share_work_lose_and_find_each_other(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Each has a keeper, a computer and a gateway. One clock is ten minutes wrong."""
    sealed = ("unshare", "--user", "--map-root-user", "--net", "--mount", "--fork", "--kill-child")
    done = subprocess.run(
        [*sealed, sys.executable, "-m", "tests.mesh.namespace_story", str(tmp_path_factory.mktemp("ns"))],
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-6000:]
    assert done.stdout.splitlines() == [
        "paired, also with a clock that is ten minutes wrong",
        "registered, slots used, a message passed",
        "work sent, returned, accepted and undone",
        "cut off and connected again",
        "the host killed in the middle of a job and back",
        "a relay lost and back",
        "evicted and paired again",
    ]
