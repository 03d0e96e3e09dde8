"""The socket of a container engine is not lent to the computer: no mount shows one, and the refusal says what to do."""

import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.manifest.machine import look

from freehold.manifest.facts import MachineFacts


def refuse_engine(source: str | Path, home: Path, environ: dict[str, str] | None = None, extra: str = "") -> str:
    """The words of the refusal, on the machine as it really is."""
    facts = MachineFacts.gather(home, environ or {})
    text = f'{extra}[[computer.mounts]]\nsource = "{source}"\ntarget = "/mnt/a"'
    loaded = look(text, environ, real=facts.real, exists=facts.exists, is_socket=facts.is_socket)
    told = [problem for problem in loaded.problems if problem.code == "E221"]
    assert len(told) == 1, loaded.problems
    assert told[0].key == "computer.mounts[0].source"
    assert "the socket of a container engine: whoever has it is as good as root" in told[0].message
    for way in ('computer.backend = "docker"', '"podman"', '"microvm"', "docs/guides/backends.md"):
        assert way in told[0].hint
    return told[0].message


@pytest.fixture
def place() -> Iterator[Path]:
    """Its path is short enough to be shown whole."""
    with tempfile.TemporaryDirectory(prefix="fh-") as folder:
        yield Path(folder)


@pytest.fixture
def engine_socket(place: Path) -> Iterator[Path]:
    """One at which a program really listens."""
    path = place / "engine" / "docker.sock"
    path.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as engine:
        engine.bind(str(path))
        engine.listen()
        yield path


@pytest.mark.parametrize("name", ["docker.sock", "podman/podman.sock", "containerd/containerd.sock"])
def test_the_usual_socket_of_an_engine_is_refused_with_the_reason_and_the_way_to_go(name: str, place: Path) -> None:
    """Also before the engine has started, and below the old name of the folder."""
    for folder in ("/run", "/var/run"):
        assert f'"/run/{name}"' in refuse_engine(f"{folder}/{name}", place)


@pytest.mark.parametrize("name", ["docker.sock", "podman.sock", "containerd.sock", "buildkitd.sock"])
def test_a_folder_that_holds_the_socket_of_an_engine_is_refused_wherever_it_is(
    engine_socket: Path, name: str, place: Path
) -> None:
    engine_socket = engine_socket.rename(engine_socket.with_name(name))
    for source in (engine_socket, engine_socket.parent):
        assert f'"{engine_socket}"' in refuse_engine(source, place / "home")


@pytest.mark.parametrize(
    ("source", "held"),
    [
        ("/run", "/run/docker.sock"),
        ("/var/run", "/run/docker.sock"),
        ("/run/docker", "/run/docker/docker.sock"),
        ("/var/run/podman", "/run/podman/podman.sock"),
        ("/", "/run/containerd/containerd.sock"),
    ],
)
def test_a_folder_of_the_system_that_holds_the_socket_of_an_engine_is_refused_with_the_reason(
    source: str, held: str
) -> None:
    text = f'[[computer.mounts]]\nsource = "{source}"\ntarget = "/mnt/a"'
    real = MachineFacts.gather(Path("/nowhere")).real
    found = look(text, real=real, is_socket=lambda path: str(path) == held).problems
    (told,) = [one.message for one in found if one.code == "E221"]
    assert f'"{held}", the socket of a container engine' in told


def test_a_link_to_the_socket_of_an_engine_is_refused_as_the_socket(engine_socket: Path, place: Path) -> None:
    to_socket, to_folder, to_link = place / "harmless", place / "code", place / "again"
    to_socket.symlink_to(engine_socket)
    to_folder.symlink_to(engine_socket.parent)
    to_link.symlink_to(to_folder)
    for source in (to_socket, to_folder, to_link, to_link / "docker.sock", to_folder / ".." / "engine"):
        assert str(engine_socket) in refuse_engine(source, place / "home")


def test_an_engine_at_an_unusual_place_is_found_by_the_settings_that_name_it(engine_socket: Path, place: Path) -> None:
    """At any depth below the mounted folder, and with any name."""
    odd = engine_socket.rename(engine_socket.with_name("e"))
    home, address = place / "home", f"unix://{odd}"
    for source in (odd, place):
        for name in ("DOCKER_HOST", "CONTAINER_HOST", "SANDBOX_HOST"):
            extra = '[computer]\nbackend = "docker"\n' if name == "SANDBOX_HOST" else ""
            assert str(odd) in refuse_engine(source, home, {name: address}, extra)
        named = f'[computer]\nbackend = "podman"\nhost = "{address}"\n'
        assert str(odd) in refuse_engine(source, home, extra=named)
    rootless = place / "podman"
    rootless.mkdir()
    odd.rename(rootless / "podman.sock")
    assert "podman.sock" in refuse_engine(place, home, {"XDG_RUNTIME_DIR": str(place)})


def test_a_socket_of_something_else_is_refused_and_not_called_an_engine(engine_socket: Path, place: Path) -> None:
    other = engine_socket.rename(engine_socket.with_name("agent"))
    facts = MachineFacts.gather(place / "home")

    def ask(source: Path) -> list[str]:
        text = f'[[computer.mounts]]\nsource = "{source}"\ntarget = "/mnt/a"'
        return [one.message for one in look(text, real=facts.real, is_socket=facts.is_socket).problems]

    assert ask(other) == [f'Mounting "{other}" would give the agent "{other}"']
    assert ask(other.parent) == []
    (other.parent / "docker.sock").write_text("a file with such a name is no socket")
    (other.parent / "podman.sock").symlink_to("/run/podman/podman.sock")
    assert ask(other.parent) == [], "a link in a folder leads to a place inside"
