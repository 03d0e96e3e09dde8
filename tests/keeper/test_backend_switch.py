"""A whole Freehold whose computer is a container, and then is not."""

from pathlib import Path

from tests.computer.engines import running_engine
from tests.support.freehold import FreeholdHarness

from freehold.computer.engine.backend import ContainerBackend


def test_switching_the_backend_keeps_files_and_history(tmp_path: Path) -> None:
    """The same home: a file is made in a container, changed behind bubblewrap, and the change is undone."""
    with running_engine("docker") as backend:
        assert isinstance(backend, ContainerBackend)
        harness = FreeholdHarness(
            tmp_path, FREEHOLD_COMPUTER_BACKEND="docker", SANDBOX_HOST=f"unix://{backend._api.path}"
        )
        with harness.keeper() as keeper:
            keeper.next("ready")
            made = harness.run("run", "--", "sh", "-c", "id -u; echo one > file", check=True)
            assert made.stdout.strip() == str((harness.home.workspace / "file").stat().st_uid), "no user namespace"
            assert keeper.stop() == 0
        assert backend._api.ask("GET", "/containers/json?all=1") == []
    harness.environment |= {"FREEHOLD_COMPUTER_BACKEND": "bubblewrap"}
    del harness.environment["SANDBOX_HOST"]
    with harness.keeper() as keeper:
        keeper.next("ready")
        changed = harness.run("run", "--", "sh", "-c", "cat file; echo two > file; id -u", check=True)
        assert changed.stdout.split() == ["one", "1000"]
        harness.run("undo", check=True)
        assert (harness.home.workspace / "file").read_text() == "one\n"
        assert keeper.stop() == 0
