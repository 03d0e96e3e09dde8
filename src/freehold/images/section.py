"""`[image]`: the system of the computer, when it is not this machine's own."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, Strict

from freehold.manifest.sections.base import Section

Words = Annotated[tuple[str, ...], Strict(False)]


class ImageSection(Section):
    """What `freehold build` puts into the image. It is used when `computer.image` is `"built"`."""

    suite: str = Field(
        default="bookworm",
        description="The release of Debian. The package sources of this machine must have it.",
        examples=["trixie"],
    )
    packages: Words = Field(
        default=("git", "ca-certificates", "curl", "procps"),
        description="Debian packages beside the essential ones and Python.",
        examples=[["git", "ripgrep"]],
    )
    python: str | None = Field(
        default=None,
        description="The version that Debian's python3 must have; else any. It chooses no other: bookworm has 3.11, trixie 3.13.",
        examples=["3.11"],
    )
    node: str | None = Field(default=None, description="The version of Node; else none.", examples=["24"])
    python_packages: Words = Field(
        default=(),
        description="Packages from PyPI that Python inside can import.",
        examples=[["numpy", "pandas==2.3.3"]],
    )
    npm_packages: Words = Field(
        default=(), description="Packages from npm, with their commands on PATH.", examples=[["typescript@5.9.3"]]
    )
    agents: Words = Field(
        default=(),
        description="Agents that are installed here (`freehold agents add NAME`) and go into the image as they are, with the Node that they run with.",
        examples=[["claude"]],
    )
    skills: Words = Field(
        default=(),
        description="Skills that are in use here (`freehold skills add`) and go into the image as they are.",
        examples=[["git-hygiene"]],
    )
    files: Mapping[str, str] = Field(
        default={},
        description="Further files and folders: path in the image, and where they are on this machine.",
        examples=[{"/opt/skills": "~/skills"}],
    )
