"""The sealed machine and its way out: `[computer]`, `[egress]`."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, Strict

from freehold.manifest.sections.base import Section
from freehold.manifest.units import Bytes, Command, Port, Seconds, Words

Backend = Literal["bubblewrap", "docker", "microvm"]


class Limits(Section):
    """What the computer may use. Each is in force with a warning at 80 % and an error that names it."""

    memory: Bytes = Field(
        default=4 * 1024**3, description="Memory of everything in the computer together, temporary files included."
    )
    processes: int = Field(default=1024, description="Processes and threads that may exist at once.")
    cpus: float = Field(default=2.0, description="Processor cores that may be kept busy.", examples=[1.5])
    open_files: int = Field(default=16384, description="Files one process may hold open.")
    file_size: Bytes = Field(default=8 * 1024**3, description="The largest file that may be written.")
    disk: Bytes = Field(default=20 * 1024**3, description="Disk that the persistent folders may fill.")
    inodes: int = Field(default=2_000_000, description="Files and folders the persistent folders may hold.")
    output: Bytes = Field(default=16 * 1024**2, description="Output of one command that is kept; the rest is cut.")
    cpu_time: Seconds = Field(default=3600, description="Processor time of one command.")
    wall_time: Seconds = Field(default=3600, description="How long one command may take.")
    tmp: Bytes = Field(default=1024**3, description="Temporary files; they count as memory too.")


class Mount(Section):
    """A folder of the host that is seen in the computer."""

    source: str = Field(default="", description="The folder on this machine.", examples=["~/code/library"])
    target: str = Field(default="", description="Where the computer sees it.", examples=["/mnt/library"])
    writable: bool = Field(default=False, description="Whether the agent may change it; history does not cover it.")


class Service(Section):
    """A program that is kept running in the computer, such as a dev server."""

    command: Command = Field(
        default=(), description="The program and its arguments, without a shell.", examples=["npm run dev"]
    )
    port: Port | None = Field(
        default=None, description="The port it serves inside the computer, for the preview.", examples=[5173]
    )
    folder: str = Field(default="/workspace", description="The folder inside the computer in which it starts.")
    restart_on_undo: bool = Field(default=False, description="Whether an undo restarts it.")


class ComputerSection(Section):
    """The sealed machine the agent lives in."""

    backend: Backend = Field(default="bubblewrap", description="What builds the walls.")
    image: str | None = Field(
        default=None,
        description="A root folder (bubblewrap), image name (docker) or disk image (microvm); else this machine's /usr, read-only.",
        examples=["/var/lib/freehold/images/bookworm"],
    )
    host: str | None = Field(
        default=None,
        description="Where the docker engine is reached, for the docker backend.",
        examples=["unix:///run/docker.sock"],
    )
    limits: Limits = Field(default=Limits(), description="What the computer may use.")
    mounts: Annotated[tuple[Mount, ...], Strict(False)] = Field(
        default=(), description="Folders of the host that are seen in the computer."
    )
    services: Mapping[str, Service] = Field(default={}, description="Programs kept running in the computer, by name.")


class Egress(Section):
    """The only way out of the computer."""

    mode: Literal["deny", "ask", "allow"] = Field(
        default="ask", description="What happens to a host that no rule names: refused, asked for, or let through."
    )
    allow: Words = Field(
        default=(),
        description="Hosts that may be reached, with an optional port; `*.` stands for every subdomain.",
        examples=[["api.test", "*.code.test:443"]],
    )
    deny: Words = Field(
        default=(), description="Hosts that may never be reached; wins over allow.", examples=[["*.example.org"]]
    )
