"""Manifest checks of `[image]`."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from freehold.computer.contract.conventions import AGENT_HOME, AGENTS_PATH, SKILLS_PATH, WORKSPACE
from freehold.images.section import ImageSection
from freehold.manifest.checks import CheckFinding, check
from freehold.manifest.facts import MachineFacts
from freehold.manifest.model import Manifest
from freehold.manifest.problem import show_value

DEBIAN_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]+")
REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9,._-]+\])?([=<>!~]=?[A-Za-z0-9.*+!,<>=~-]+)?")
NPM_NAME = re.compile(r"(@[a-z0-9._-]+/)?[a-z0-9][a-z0-9._-]*(@[A-Za-z0-9.^~*<>=+-]+)?")
AGENT_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")
SKILL_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
VERSION = re.compile(r"\d+(\.\d+){0,2}")
SUITE = re.compile(r"[a-z][a-z0-9-]*")
RESERVED = (WORKSPACE, AGENT_HOME, AGENTS_PATH, SKILLS_PATH, "/opt/freehold", "/dev", "/proc", "/run", "/sys", "/tmp")  # noqa: S108
"""Places that the computer covers, so that files there would never be seen."""
LINKS = {
    **{f"/{name}": f"/usr/{name}" for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32")},
    "/var/run": "/run",
    "/var/lock": "/run/lock",
}
"""Links of Debian: a folder in their place would hide what they lead to, such as /bin/sh."""


@check("E241")
def image_name_malformed(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """A name in `[image]` cannot be a package, a version or a release."""
    section = manifest.section(ImageSection)
    lists = (
        ("packages", section.packages, DEBIAN_NAME, 'packages = ["git", "ripgrep"]'),
        ("python_packages", section.python_packages, REQUIREMENT, 'python_packages = ["numpy==2.3.4"]'),
        ("npm_packages", section.npm_packages, NPM_NAME, 'npm_packages = ["typescript@5.9.3"]'),
        ("agents", section.agents, AGENT_NAME, 'agents = ["claude"]'),
        ("skills", section.skills, SKILL_NAME, 'skills = ["git-hygiene"]'),
    )
    for key, names, form, example in lists:
        for index, name in enumerate(names):
            if not form.fullmatch(name):
                message = f"image.{key} has {show_value(name)}, which cannot be a package"
                yield CheckFinding(("image", key, index), message, example)
    for key, value, form, example in (
        ("suite", section.suite, SUITE, 'suite = "bookworm"'),
        ("python", section.python, VERSION, 'python = "3.11"'),
        ("node", section.node, VERSION, 'node = "24"'),
    ):
        if value is not None and not form.fullmatch(value):
            yield CheckFinding(("image", key), f"image.{key} is {show_value(value)}", example)


@check("E242")
def image_file_misplaced(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """A file of `[image.files]` goes to a place that the computer covers, or does not exist."""
    for target, source in manifest.section(ImageSection).files.items():
        place = PurePosixPath(target)
        if not place.is_absolute() or ".." in place.parts or len(place.parts) < 2:
            message = f"image.files has {show_value(target)}, which is not a path inside the image"
            yield CheckFinding(("image", "files", target), message, '"/opt/skills" = "~/skills"')
        elif any(place.is_relative_to(covered) for covered in RESERVED):
            message = f"image.files puts something at {show_value(target)}, which the computer covers"
            yield CheckFinding(("image", "files", target), message, "Choose another place, such as /opt or /usr/local")
        elif link := next((one for one in LINKS if place.is_relative_to(one)), None):
            message = f"image.files puts something at {show_value(target)}, and {link} is a link to {LINKS[link]}"
            yield CheckFinding(("image", "files", target), message, "Choose another place, such as /opt or /usr/local")
        elif not facts.exists(facts.real(source)):
            message = f"image.files names {show_value(source)}, which does not exist"
            yield CheckFinding(("image", "files", target), message, "Create it, or remove the line")
