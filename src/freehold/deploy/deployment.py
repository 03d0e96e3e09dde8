"""What a deployment in containers consists of, read from the manifest. Each kind of file is written from this."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from freehold import __version__
from freehold.backup.section import BackupSection
from freehold.computer.attached.attachment import PROGRAM
from freehold.computer.attached.place_check import FOLDER_INSIDE
from freehold.computer.contract.conventions import (
    AGENT_HOME,
    AGENTS_PATH,
    GUEST_PATH,
    GUEST_PYTHON,
    SKILLS_PATH,
    WORKSPACE,
)
from freehold.computer.contract.spec import Limits
from freehold.computer.walls.inside import RUN_SIZE, tmp_size
from freehold.deploy.section import DeploySection
from freehold.errors import FreeholdError
from freehold.home import Home, find_home
from freehold.images.artifacts import BUILT, ImageFolder
from freehold.images.kinds import BRAIN, BRAIN_HOME, BRAIN_UID, COMPUTER, LINK_FOLDER
from freehold.manifest import LoadedManifest, Manifest, load_manifest
from freehold.manifest.addresses import is_any, is_loopback
from freehold.manifest.environment import NAMED_VARIABLES
from freehold.skills.section import SkillsSection
from freehold.ssh.section import SshSection

GATEWAY_PORT, SSH_PORT = 3000, 2222
SUBNET, MACHINE_ADDRESS, CADDY_ADDRESS = "10.213.77.0/24", "10.213.77.1", "10.213.77.53"
"""The engine gives the first addresses to others: MACHINE_ADDRESS is where connections from the machine itself come from."""
MAX_PROCESSES = 16_384
BRAIN_PROCESSES = 1024
MIB = 1 << 20
PAGE = 4096
COVERED = tuple(f"/sys/{name}" for name in ("block", "bus", "class", "devices", "kernel", "module"))
"""What an engine shows of the hardware. The rest of /sys has the limits of the computer, which Freehold checks."""
DeploymentForm = Literal["containers", "pod"]
"""Whether somebody else starts the computer, in a container of its own, or Freehold seals it inside of its pod."""
SYSTEM_FOLDER = "/opt/computer"
"""Where a pod has the files of the image of the computer."""
WITHOUT_OWNER = "E114"
ABOUT_THIS_MACHINE = frozenset({"E203", "E210", "E602"})
"""Its memory and cores, a root folder, and its disk. A pod runs on another one."""
_START = [GUEST_PYTHON, "-I", "-S", "-E", f"{FOLDER_INSIDE}/{PROGRAM}", GUEST_PATH, WORKSPACE, AGENT_HOME]
WAIT_AND_START = (
    "import os, time; "
    f"[time.sleep(0.1) for _ in iter(lambda: os.path.exists({f'{FOLDER_INSIDE}/{PROGRAM}'!r}), True)]; "
    f"os.execv({GUEST_PYTHON!r}, {_START!r})"
)
COMPUTER_COMMAND = (GUEST_PYTHON, "-I", "-S", "-E", "-c", WAIT_AND_START)
"""The first program of the computer. It waits until Freehold has written what to start."""


@dataclass(frozen=True)
class VolumeUse:
    """A volume, or a folder of this machine if `source` is a path, as one container sees it."""

    source: str
    target: str
    is_read_only: bool = False
    fills_empty: bool = True
    """Whether an empty volume gets what the image has there. The brain prepares the volumes, the computer does not."""

    @property
    def is_named(self) -> bool:
        return not self.source.startswith(("/", "."))


@dataclass(frozen=True)
class TemporaryFolder:
    target: str
    size: int
    is_cover: bool = False
    """Whether it only hides what is there."""
    has_programs: bool = False
    """Whether programs in it can be run, which an engine does not allow unless it is told."""

    @property
    def options(self) -> str:
        kind, mode = ("ro", "555") if self.is_cover else ("rw,exec", "1777") if self.has_programs else ("rw", "1777")
        return f"{kind},nosuid,nodev,size={self.size},mode={mode}"


@dataclass(frozen=True)
class PublishedPort:
    outside: int
    inside: int
    address: str = ""

    def __str__(self) -> str:
        """As engines read it."""
        shown = f"[{self.address}]" if ":" in self.address else self.address
        return f"{shown}{':' if shown else ''}{self.outside}:{self.inside}"


@dataclass(frozen=True)
class Deployment:
    """`environment` is the brain's; a value of None is taken from whoever starts the containers."""

    manifest: Manifest
    section: DeploySection
    checksum: str
    brain_image: str
    computer_image: str
    environment: Mapping[str, str | None]
    ports: tuple[PublishedPort, ...]
    brain_volumes: tuple[VolumeUse, ...]
    computer_volumes: tuple[VolumeUse, ...]
    brain_memory_folders: tuple[TemporaryFolder, ...]
    computer_memory_folders: tuple[TemporaryFolder, ...]
    shared_memory: int

    @property
    def uid(self) -> int:
        return BRAIN_UID

    @property
    def labels(self) -> dict[str, str]:
        return {"freehold.version": __version__, "freehold.manifest": f"sha256:{self.checksum}"}

    @property
    def ulimits(self) -> dict[str, int]:
        """A core of one byte is not written, and not handed to a program of the host either."""
        limits = self.manifest.computer.limits
        return {"nofile": limits.open_files, "fsize": limits.file_size, "nproc": MAX_PROCESSES, "core": 1}

    @property
    def foreign_folders(self) -> list[Path]:
        """Folders of this machine that Freehold writes to, and that belong to another user than that of the containers."""
        sources = [Path(one.source) for one in self.brain_volumes if not (one.is_named or one.is_read_only)]
        return [path for path in sources if not path.is_dir() or path.stat().st_uid != self.uid]

    @property
    def has_own_network(self) -> bool:
        """Whether the addresses in the network of the brain must be known: those of proxies that it trusts."""
        return self.section.caddy or is_loopback(self.section.http_address)

    @property
    def volume_names(self) -> list[str]:
        uses = (*self.brain_volumes, *self.computer_volumes)
        return list(dict.fromkeys(one.source for one in uses if one.is_named))


@dataclass(frozen=True)
class ImageNames:
    """Images that are used in the place of those that were built here."""

    brain: str | None = None
    computer: str | None = None


def read_deployment(home: Home, images: ImageNames, form: DeploymentForm = "containers") -> Deployment:
    """Raises `deploy.invalid` when the manifest has errors, and `deploy.not-built` without an image."""
    if not home.manifest.exists():
        raise FreeholdError("home.missing", f"There is no manifest in {home.root}", hint="Create one: freehold init")
    written = load_manifest(home.manifest, {}, home=home.root).manifest
    settings = _container_settings(written, form)
    given = {name: value for name, value in os.environ.items() if name in NAMED_VARIABLES and value}
    set_later = dict.fromkeys(_find_references(written.model_dump(mode="json")), "set later")
    loaded = load_manifest(home.manifest, {**set_later, **given, **settings}, home=home.root)
    _check(loaded, form)
    manifest, section = loaded.manifest, loaded.manifest.section(DeploySection)
    return Deployment(
        manifest=manifest,
        section=section,
        checksum=loaded.checksum,
        brain_image=images.brain
        if images.brain is not None
        else _name_image(ImageFolder(home.brain_images, home.brain_lock), BRAIN.name, "--brain"),
        computer_image=images.computer if images.computer is not None else _find_computer_image(home, manifest),
        environment={**dict.fromkeys(_outside_variables(manifest)), **settings},
        ports=tuple(_list_ports(manifest, section)),
        brain_volumes=tuple(_list_brain_volumes(manifest)),
        computer_volumes=tuple(_list_computer_volumes(manifest)),
        brain_memory_folders=(TemporaryFolder("/tmp", 512 * MIB), TemporaryFolder("/run", 64 * MIB)),  # noqa: S108
        computer_memory_folders=tuple(_list_memory_folders(manifest)),
        shared_memory=tmp_size(_limits(manifest)),
    )


def _limits(manifest: Manifest) -> Limits:
    return Limits(**manifest.computer.limits.model_dump())


def _check(loaded: LoadedManifest, form: DeploymentForm) -> None:
    """Whether the manifest is right in containers. What is about this machine's ports and folders is not asked."""
    errors = [one for one in loaded.errors if form == "containers" or one.code not in ABOUT_THIS_MACHINE]
    if any(one.code == WITHOUT_OWNER for one in errors):
        raise FreeholdError(
            "deploy.invalid",
            "owner.did is not set, and a Freehold in containers can be reached by other machines",
            hint="Name the owner: freehold init --owner YOUR.HANDLE, or set OWNER_DID",
        )
    if errors:
        lines = "\n".join(f"  {one.place}: {one.message}  [{one.code}]" for one in errors)
        raise FreeholdError(
            "deploy.invalid",
            f"The manifest cannot be used in containers\n{lines}",
            hint="; ".join(dict.fromkeys(one.hint for one in errors)),
        )


def _container_settings(manifest: Manifest, form: DeploymentForm) -> dict[str, str]:
    """What the manifest cannot know: inside a container it listens on every address, and where the computer is."""
    section = manifest.section(DeploySection)
    computer = (
        {"FREEHOLD_COMPUTER_BACKEND": "attached", "SANDBOX_HOST": f"unix://{LINK_FOLDER}"}
        if form == "containers"
        else {"FREEHOLD_COMPUTER_BACKEND": "bubblewrap", "FREEHOLD_COMPUTER_IMAGE": SYSTEM_FOLDER}
    )
    settings = {
        **computer,
        "FREEHOLD_GATEWAY_HOST": "0.0.0.0",  # noqa: S104 - inside the container
        "FREEHOLD_GATEWAY_PORT": str(GATEWAY_PORT),
    }
    if manifest.section(SshSection).enabled:
        settings |= {"FREEHOLD_SSH_HOST": "0.0.0.0", "FREEHOLD_SSH_PORT": str(SSH_PORT)}  # noqa: S104
    if section.caddy or (form == "containers" and is_loopback(section.http_address)):
        nearest = CADDY_ADDRESS if section.caddy else MACHINE_ADDRESS
        proxies = dict.fromkeys([*manifest.gateway.trusted_proxies, nearest])
        settings["FREEHOLD_GATEWAY_TRUSTED_PROXIES"] = ",".join(proxies)
    return settings


OFFERED_KEYS = {"OPENAI_API_KEY": "openai", "ANTHROPIC_API_KEY": "anthropic"}
"""Keys of model providers that are passed on. The control center offers what it finds in them."""


def _outside_variables(manifest: Manifest) -> list[str]:
    """Variables that whoever starts the containers may set: the old names, the keys of models, and what the manifest names."""
    named = [name for name in NAMED_VARIABLES if name != "SANDBOX_HOST"]
    return list(dict.fromkeys([*named, *OFFERED_KEYS, *sorted(_find_references(manifest.model_dump(mode="json")))]))


def _find_references(value: object) -> Iterator[str]:
    if isinstance(value, str) and value.startswith("env:"):
        yield value.removeprefix("env:")
    elif isinstance(value, Mapping):
        for below in value.values():
            yield from _find_references(below)
    elif isinstance(value, list | tuple):
        for below in value:
            yield from _find_references(below)


def _list_ports(manifest: Manifest, section: DeploySection) -> Iterator[PublishedPort]:
    """Pages that have no sign-in of their own are published only if the manifest has an exception for them."""
    if not section.caddy:
        yield PublishedPort(
            section.http_port, GATEWAY_PORT, "" if is_any(section.http_address) else section.http_address
        )
    if manifest.section(SshSection).enabled:
        yield PublishedPort(section.ssh_port, SSH_PORT)
    if not is_loopback(manifest.keeper.host):
        yield PublishedPort(manifest.keeper.port, manifest.keeper.port)
    if not is_loopback(manifest.observe.metrics_host):
        yield PublishedPort(manifest.observe.metrics_port, manifest.observe.metrics_port)


def _list_brain_volumes(manifest: Manifest) -> Iterator[VolumeUse]:
    home = find_home(BRAIN_HOME)
    yield VolumeUse("home", str(home.root))
    yield VolumeUse("workspace", str(home.workspace))
    yield VolumeUse("agent-home", str(home.agent_home))
    yield VolumeUse("agents", str(home.agents))
    if manifest.section(SkillsSection).enabled:
        yield VolumeUse("skills", str(home.skills))
    yield VolumeUse("link", LINK_FOLDER)
    yield VolumeUse("./freehold.toml", str(home.manifest), is_read_only=True)
    for mount in manifest.computer.mounts:
        if mount.kind == "folder":
            yield VolumeUse(str(Path(mount.source).expanduser()), _find_inside(mount.source), is_read_only=True)
    backups = manifest.section(BackupSection).folder
    if backups is not None:
        yield VolumeUse(str(Path(backups).expanduser()), _find_inside(backups))


def _find_inside(folder: str) -> str:
    """The manifest may say `~`, which is another folder in the container."""
    return folder.replace("~", BRAIN_HOME, 1) if folder.startswith("~") else folder


def _list_computer_volumes(manifest: Manifest) -> Iterator[VolumeUse]:
    yield VolumeUse("workspace", WORKSPACE, fills_empty=False)
    yield VolumeUse("agent-home", AGENT_HOME, fills_empty=False)
    yield VolumeUse("agents", AGENTS_PATH, is_read_only=True, fills_empty=False)
    if manifest.section(SkillsSection).enabled:
        yield VolumeUse("skills", SKILLS_PATH, is_read_only=True, fills_empty=False)
    yield VolumeUse("link", FOLDER_INSIDE, is_read_only=True, fills_empty=False)
    for mount in manifest.computer.mounts:
        if mount.kind == "folder":
            yield VolumeUse(str(Path(mount.source).expanduser()), mount.target, is_read_only=not mount.writable)


def _list_memory_folders(manifest: Manifest) -> Iterator[TemporaryFolder]:
    """As in every other computer, programs run in them: isolates of JavaScript load their addon from /tmp."""
    yield TemporaryFolder("/tmp", tmp_size(_limits(manifest)), has_programs=True)  # noqa: S108
    yield TemporaryFolder("/run", RUN_SIZE, has_programs=True)
    for place in COVERED:
        yield TemporaryFolder(place, PAGE, is_cover=True)
    for mount in manifest.computer.mounts:
        if mount.kind == "memory":
            yield TemporaryFolder(mount.target, mount.size or 0, has_programs=True)


def _find_computer_image(home: Home, manifest: Manifest) -> str:
    image = manifest.computer.image
    if image is not None and image != BUILT and not image.startswith(("/", "~", ".")):
        return image
    return _name_image(ImageFolder(home.images, home.image_lock), COMPUTER.name, "")


def _name_image(images: ImageFolder, name: str, option: str) -> str:
    record = images.read_record()
    if record is None:
        raise FreeholdError(
            "deploy.not-built",
            f"The image {name} was not built",
            hint=f"freehold build {option}".rstrip() + ", or name one: --brain-image and --computer-image",
        )
    return f"{name}:{record.lock[:12]}"


def find_host_name(deployment: Deployment) -> str:
    return urlsplit(deployment.manifest.gateway.public_url or "").hostname or "localhost"
