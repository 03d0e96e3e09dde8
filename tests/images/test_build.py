"""A real image: chosen from Debian, built without the network, and used by a sealed computer.

One build, because it takes most of a minute. `python -m bench.images` builds twice and fails when the bytes differ.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.computer.engines import running_engine
from tests.computer.virtual_machines import micro_vm
from tests.images.offline import offline

from freehold.computer import Computer
from freehold.computer.engine.backend import ContainerBackend
from freehold.errors import FreeholdError
from freehold.images.artifacts import BUILT, ImageFolder, ImageRecord
from freehold.images.build import build_image
from freehold.images.lock import ImageLock, write_lock
from freehold.images.pool import PackagePool
from freehold.images.resolution import choose_packages
from freehold.images.section import ImageSection

SECTION = ImageSection(packages=(), python_packages=("six",))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ImageFolder, ImageLock, ImageRecord]]:
    """One build for all tests of this module, which must not change it."""
    folder = tmp_path_factory.mktemp("home")
    images = ImageFolder(folder / "images", folder / "freehold.lock")
    lock = choose_packages(SECTION, PackagePool(images.pool), list)
    write_lock(images.lock_path, lock)
    with offline():
        record = build_image(images, lock)
    yield images, lock, record
    shutil.rmtree(folder)


def test_a_build_has_every_artifact_and_a_record_of_it(built: tuple[ImageFolder, ImageLock, ImageRecord]) -> None:
    images, _, record = built
    assert set(record.files) == {"disk.erofs", "image.tar", "root.list", "sbom.cdx.json"}
    assert images.check(thorough=True) == record


def read_config(archive: Path, record: ImageRecord) -> dict[str, Any]:
    command = ["tar", "-xOf", str(archive), f"blobs/sha256/{record.config}"]
    config: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return config


async def test_a_sealed_computer_starts_from_the_built_root(
    built: tuple[ImageFolder, ImageLock, ImageRecord], tmp_path: Path
) -> None:
    """The system inside is the image's: its packages are there, and those of this machine are not."""
    images, lock, _ = built
    async with Computer.start(image=images.resolve(BUILT, "bubblewrap")) as computer:
        ran = await computer.run(["/usr/bin/python3", "-c", "import six; print(six.__version__)"])
        assert ran.text.strip() == next(one.version for one in lock.packages if one.name == "six")
        installed = await computer.run("ls /usr/bin/git /usr/bin/mmdebstrap")
        assert not installed.ok
        names = {one.name for one in lock.of_kind("deb")}
        status = await computer.run("ls /usr/lib/os-release /usr/bin/bash")
        assert status.ok, status.stderr
        assert {"python3", "bash", "ca-certificates"} <= names


async def test_a_container_starts_from_the_same_image(built: tuple[ImageFolder, ImageLock, ImageRecord]) -> None:
    """The engine knows the image by the hash that the record has, and loads it once."""
    images, lock, record = built
    with running_engine("docker") as backend:
        for _ in range(2):
            async with Computer.start(backend=backend, image=images.resolve(BUILT, "docker")) as computer:
                ran = await computer.run(["/usr/bin/python3", "-c", "import six; print(six.__version__)"])
                assert ran.text.strip() == next(one.version for one in lock.packages if one.name == "six")
                assert (await computer.run("touch /tmp/here /run/here")).ok
                assert not (await computer.run("ls /usr/bin/git")).ok
        assert isinstance(backend, ContainerBackend)
        assert backend._api.has_image(f"sha256:{record.config}") is not None


async def test_a_virtual_machine_starts_from_the_disk(built: tuple[ImageFolder, ImageLock, ImageRecord]) -> None:
    images, lock, _ = built
    with micro_vm() as backend:
        async with Computer.start(backend=backend, image=images.resolve(BUILT, "microvm")) as computer:
            ran = await computer.run(["/usr/bin/python3", "-c", "import six; print(six.__version__)"])
            assert ran.text.strip() == next(one.version for one in lock.packages if one.name == "six")
            assert not (await computer.run("ls /usr/bin/git")).ok
            await computer.files.write("made", b"inside")


def test_at_boot_the_artifacts_are_checked_against_record_and_lock(
    built: tuple[ImageFolder, ImageLock, ImageRecord], tmp_path: Path
) -> None:
    """Each artifact in turn is changed; the same check is what the keeper runs."""
    images, lock, _ = built
    copy = ImageFolder(tmp_path / "images", tmp_path / "freehold.lock")
    shutil.copytree(images.current.resolve(), copy.folder / "one", symlinks=True)
    copy.current.symlink_to("one")
    write_lock(copy.lock_path, lock)
    for backend in ("bubblewrap", "docker", "podman", "microvm"):
        copy.check(backend)
    for backend, name in (("docker", "image.tar"), ("microvm", "disk.erofs"), ("bubblewrap", "root/usr/bin/env")):
        with (copy.current / name).open("ab") as file:
            file.write(b"planted")
        with pytest.raises(FreeholdError) as caught:
            copy.check(backend)
        assert caught.value.code == "image.tampered"
    write_lock(copy.lock_path, ImageLock(lock.suite, lock.architecture, lock.request, lock.wanted, ()))
    with pytest.raises(FreeholdError) as caught:
        copy.check("bubblewrap")
    assert caught.value.code == "image.changed"
    copy.current.unlink()
    with pytest.raises(FreeholdError) as caught:
        copy.check("bubblewrap")
    assert caught.value.code == "image.not-built"


def test_a_package_that_is_not_what_was_locked_stops_the_build(
    built: tuple[ImageFolder, ImageLock, ImageRecord], tmp_path: Path
) -> None:
    images, lock, _ = built
    other = ImageFolder(tmp_path / "images", images.lock_path)
    shutil.copytree(images.pool, other.pool)
    package = next(one for one in lock.packages if one.name == "bash")
    (other.pool / package.sha256).write_bytes(b"planted")
    with pytest.raises(FreeholdError, match=r"bash .* in the pool") as caught:
        build_image(other, lock)
    assert caught.value.code == "image.tampered"
    assert sorted(path.name for path in other.folder.iterdir()) == [".lock", "pool"], "nothing is left"


def test_the_archive_is_labelled_with_version_and_lock(built: tuple[ImageFolder, ImageLock, ImageRecord]) -> None:
    images, lock, record = built
    labels = read_config(images.current / "image.tar", record)["config"]["Labels"]
    assert labels["freehold.lock"] == f"sha256:{lock.digest}"
    assert labels["org.opencontainers.image.version"] == record.version
