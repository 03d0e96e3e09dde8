"""Chooses the packages of an image: from the `[image]` section to a lock, with every file in the pool."""

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from freehold.computer.contract.conventions import AGENTS_PATH, SKILLS_IN_USE, SKILLS_PATH
from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.images.build import find_python_version
from freehold.images.debian import BASE, fetch_debs, read_architecture
from freehold.images.layer import write_layer
from freehold.images.lock import EPOCH, ImageLock, LockedPackage
from freehold.images.npm import fetch_npm_packages
from freehold.images.pool import PackagePool
from freehold.images.section import ImageSection
from freehold.images.wheels import NODE_PACKAGES, NODE_WHEEL, fetch_wheels
from freehold.skills.lock import read_skill_lock
from freehold.skills.store import VERSIONS, SkillStore

Say = Callable[[str], None]
SHARED_BY_AGENTS = (".node", ".python", ".tools")
RECEIPT = "freehold.json"
"""The file that a complete installation of an agent has; tests/images compares it with the catalogue's."""
PYTHON_OF_SUITE = {"bookworm": "3.11", "trixie": "3.13"}
"""Debian has one Python in each release, and the guest needs 3.11 or later."""


def hash_request(section: ImageSection) -> str:
    """Changes when the section asks for something else. Files of the owner are asked for by their place, not content."""
    return hashlib.sha256(json.dumps(section.model_dump(mode="json"), sort_keys=True).encode()).hexdigest()


def choose_packages(
    section: ImageSection,
    pool: PackagePool,
    find_npm: Callable[[], list[str]],
    say: Say = lambda what: None,
    home: Home | None = None,
) -> ImageLock:
    """Choose and fetch. Needs the network. `find_npm` gives the words that start npm; it is asked only for npm packages.

    `home` has the agents and skills that go into the image.
    """
    if section.suite in PYTHON_OF_SUITE:  # so that nothing is fetched in vain
        check_python(section, PYTHON_OF_SUITE[section.suite])
    needs_node = section.node is not None or bool(section.npm_packages)
    wanted = {*BASE, *section.packages, *(NODE_PACKAGES if needs_node else ())}
    say(f"choosing Debian packages of {section.suite}")
    debs = fetch_debs(wanted, section.suite, pool)
    lock = ImageLock(section.suite, read_architecture(), hash_request(section), tuple(sorted(wanted)), tuple(debs))
    python = find_python_version(lock)
    check_python(section, next(one.version for one in debs if one.name == "python3").partition("-")[0])
    packages: list[LockedPackage] = list(debs)
    if needs_node:
        say("choosing Node")
        version = f"=={section.node}{'' if section.node.count('.') == 2 else '.*'}" if section.node else ""
        packages += fetch_wheels([f"{NODE_WHEEL}{version}"], python, pool)
    if section.python_packages:
        say("choosing Python packages")
        packages += fetch_wheels(section.python_packages, python, pool)
    tree: str | None = None
    if section.npm_packages:
        say("choosing npm packages")
        found, tree = fetch_npm_packages(section.npm_packages, find_npm(), pool)
        packages += found
    packages += lock_agents(section.agents, home.agents if home else None, pool)
    packages += lock_skills(section.skills, home, pool)
    packages += [_lock_files(target, Path(source), pool) for target, source in sorted(section.files.items())]
    return ImageLock(lock.suite, lock.architecture, lock.request, lock.wanted, tuple(packages), tree)


def lock_agents(names: Iterable[str], folder: Path | None, pool: PackagePool) -> list[LockedPackage]:
    """A layer for each agent, and one for each folder that agents share. Raises `image.missing`."""
    wanted = sorted(set(names))
    if not wanted:
        return []
    for name in wanted:
        if folder is None or not (folder / name / RECEIPT).is_file():
            raise FreeholdError(
                "image.missing", f"The agent {name!r} is not installed", hint=f"freehold agents add {name}"
            )
    found = [Path(folder or "", name) for name in (*SHARED_BY_AGENTS, *wanted)]
    return [_lock_files(f"{AGENTS_PATH}/{one.name}", one, pool) for one in found if one.is_dir()]


def lock_skills(names: Iterable[str], home: Home | None, pool: PackagePool) -> list[LockedPackage]:
    """A layer for each version, and one with the names that lead to them. Raises `image.missing`, `skill.tampered`."""
    wanted = sorted(set(names))
    if not wanted:
        return []
    known = read_skill_lock(home.skill_lock).skills if home else {}
    store = SkillStore(home.skills if home else Path())
    found: dict[str, str] = {}
    for name in wanted:
        if name not in known:
            raise FreeholdError("image.missing", f"The skill {name!r} is not in use", hint="freehold skills add")
        found[name] = known[name].digest
        store.read(known[name].digest)
    with tempfile.TemporaryDirectory(prefix="freehold-skills-") as folder:
        for name, digest in found.items():
            Path(folder, name).symlink_to(f"../{VERSIONS}/{digest}")
        names_layer = _lock_files(SKILLS_IN_USE, Path(folder), pool)
    versions = sorted(set(found.values()))
    places = [_lock_files(f"{SKILLS_PATH}/{VERSIONS}/{one}", store.folder / VERSIONS / one, pool) for one in versions]
    return [*places, names_layer]


def check_python(section: ImageSection, found: str) -> None:
    """Whether Debian's Python is the one that the section asks for, as far as both say it. Raises `image.no-python`."""
    if section.python is None or _is_same_version(section.python, found):
        return
    known = {**PYTHON_OF_SUITE, section.suite: found}
    fitting = [suite for suite, version in known.items() if _is_same_version(section.python, version)]
    if fitting:
        hint = (
            f'Debian {fitting[0]} has it: suite = "{fitting[0]}", with package sources of {fitting[0]} on this machine'
        )
    else:
        offered = " and ".join(f"{version} in {suite}" for suite, version in known.items())
        hint = f"An image has the Python of its Debian: {offered}. Choose one of them, or leave image.python out"
    raise FreeholdError(
        "image.no-python",
        f"image.python is {section.python!r}, and Debian {section.suite} has Python {found}",
        hint=hint,
    )


def _is_same_version(wanted: str, found: str) -> bool:
    pairs = zip(wanted.split("."), found.split("."), strict=False)
    return all(one == other for one, other in pairs)


def _lock_files(target: str, source: Path, pool: PackagePool) -> LockedPackage:
    """A layer of the owner's files. It goes into the pool, so that a later build does not depend on them."""
    with tempfile.TemporaryDirectory(prefix="freehold-files-") as folder:
        layer = Path(folder) / "files.tar"
        with write_layer(layer, EPOCH) as writer:
            writer.add_tree(target, source.expanduser())
        digest, size = pool.add(layer)
    return LockedPackage("files", target, "", target, digest, size)
