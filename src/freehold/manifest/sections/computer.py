"""`[computer]`: the sealed computer, its limits, mounts and services."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, Strict

from freehold.manifest.sections.base import Section
from freehold.manifest.units import Bytes, Command, Port, Seconds

MountKind = Literal["folder", "archive", "git", "memory", "s3", "webdav", "solid", "rclone"]
Backend = Literal["bubblewrap", "docker", "podman", "microvm", "attached"]


class LimitsSection(Section):
    """What the computer may use. At 80 % there is a warning; at the limit, an error that names the setting."""

    memory: Bytes = Field(
        default=4 * 1024**3,
        description="Memory of everything in the computer together, temporary files included. When it is full, a program in it is ended.",
    )
    processes: int = Field(
        default=1024, description="Processes and threads that may exist at once. Beyond it none can be started."
    )
    cpus: float = Field(default=2.0, description="Processor cores that may be kept busy.", examples=[1.5])
    open_files: int = Field(default=16384, description="Files one process may hold open.")
    file_size: Bytes = Field(default=8 * 1024**3, description="The largest file that may be written.")
    disk: Bytes = Field(
        default=20 * 1024**3,
        description="Disk that the persistent folders may fill. Beyond it no file can grow until something is deleted. A smaller limit removes nothing.",
    )
    inodes: int = Field(default=2_000_000, description="Files and folders the persistent folders may hold.")
    output: Bytes = Field(default=16 * 1024**2, description="Output of one command that is kept; the rest is cut.")
    cpu_time: Seconds = Field(
        default=3600, description="Processor time of one command. Beyond it the command is ended."
    )
    wall_time: Seconds = Field(
        default=3600, description="How long one command may take. Then it is ended with all that it started."
    )
    tmp: Bytes = Field(default=1024**3, description="Temporary files; they count as memory too.")


class MountSection(Section):
    """Something beside the workspace that is seen in the computer. History covers no mount."""

    kind: MountKind = Field(
        default="folder",
        description="A folder of this machine; the files of a tar or zip archive; the files of a git repository at a commit; an empty folder in memory; a bucket of S3 or a compatible service; a WebDAV folder; a folder of a Solid pod; or a remote of rclone. Archive and git are read-only.",
        examples=["git"],
    )
    source: str = Field(
        default="",
        description="The folder, the archive or the repository on this machine; nothing for memory. For s3 the bucket, and a folder in it; for webdav and solid a folder below the endpoint; for rclone `NAME:FOLDER`.",
        examples=["~/code/library"],
    )
    target: str = Field(default="", description="Where the computer sees it.", examples=["/mnt/library"])
    writable: bool = Field(default=False, description="Whether the agent may change a folder, also a remote one.")
    commit: str | None = Field(
        default=None,
        description="A commit, tag or branch, for git. It is looked up at each start.",
        examples=["v1.2.0"],
    )
    size: Bytes | None = Field(
        default=None,
        description="The size of a folder in memory. It counts as memory of the computer.",
        examples=["64MiB"],
    )
    endpoint: str | None = Field(
        default=None,
        description="The address of the server, for s3 and webdav; of the pod, for solid. Nothing else is reached.",
        examples=["https://s3.eu-central-1.amazonaws.com"],
    )
    region: str | None = Field(default=None, description="The region, for s3.", examples=["eu-central-1"])
    user: str | None = Field(
        default=None,
        description="The access key ID for s3; the user for webdav, or nothing if the key is a token; the id of the client credentials for solid.",
        examples=["agent"],
    )
    issuer: str | None = Field(
        default=None,
        description="Where you sign in to a Solid pod, if that is another server than the one of the pod.",
        examples=["https://login.example.com"],
    )
    key: str | None = Field(
        default=None,
        description="Where the key or password is kept: `secret:name`. For rclone, the secret is the output of `rclone config dump`, in one line.",
        examples=["secret:photos"],
    )
    hosts: tuple[str, ...] = Field(
        default=(),
        max_length=32,
        description="The hosts that a remote of rclone needs, with a port unless it is 443. Nothing else is reached.",
        examples=[["www.googleapis.com", "oauth2.googleapis.com"]],
        strict=False,
    )


class ServiceSection(Section):
    """A program that Freehold keeps running in the computer, such as a dev server."""

    command: Command = Field(
        default=(), description="The program and its arguments, without a shell.", examples=["npm run dev"]
    )
    port: Port | None = Field(
        default=None, description="The port it serves inside the computer, for the preview.", examples=[5173]
    )
    folder: str = Field(default="/workspace", description="The folder inside the computer in which it starts.")
    restart_on_undo: bool = Field(default=False, description="Whether an undo restarts it.")
    always: bool = Field(default=False, description="Whether it keeps the computer from falling asleep.")


class ComputerSection(Section):
    """The sealed computer in which agents work."""

    backend: Backend = Field(default="bubblewrap", description="How the computer is sealed.")
    image: str | None = Field(
        default=None,
        description='The word "built" for what `freehold build` made; or a root folder (bubblewrap), image name (docker) or disk image (microvm). Else this machine\'s /usr, read-only.',
        examples=["built"],
    )
    host: str | None = Field(
        default=None,
        description="Where the engine is reached, for docker and podman; else where it usually listens. For attached, the folder that is shared with the computer.",
        examples=["unix:///run/docker.sock"],
    )
    sleep_after: Seconds | None = Field(
        default=None,
        description="The computer sleeps when nobody has used it for so long, and wakes on its first use; else it stays awake.",
        examples=["30m"],
    )
    limits: LimitsSection = Field(default=LimitsSection(), description="What the computer may use.")
    mounts: Annotated[tuple[MountSection, ...], Strict(False)] = Field(
        default=(), description="What is seen in the computer beside the workspace."
    )
    services: Mapping[str, ServiceSection] = Field(
        default={}, description="Programs that are kept running in the computer, by name."
    )
