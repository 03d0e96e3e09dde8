"""Installing an agent with all its packages: pinned, checked by hash, complete or not at all.

None of the code that is installed runs on the host.
"""

import hashlib
import json
import shutil
import tempfile
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from freehold.agents.catalogue.archive import install_archive_agent
from freehold.agents.catalogue.definition import AgentDefinition
from freehold.agents.catalogue.install_command import Progress
from freehold.agents.catalogue.managed_python import is_python_ready
from freehold.agents.catalogue.npm import copy_node, fetch_locked, install_npm_agent
from freehold.agents.catalogue.pypi import builtin_version, install_pypi_agent, is_builtin, needs_managed_python
from freehold.agents.catalogue.staging_folder import hold_install_lock, replace_agent_folder
from freehold.errors import FreeholdError
from freehold.home import Home

RECEIPT = "freehold.json"


@dataclass(frozen=True)
class InstallReceipt:
    """What is installed. It is written last: a folder without a receipt counts as not installed."""

    package: str
    lock: str
    at: str


def read_receipt(home: Home, name: str) -> InstallReceipt | None:
    """None when the agent is not installed."""
    try:
        found = json.loads((home.agents / name / RECEIPT).read_bytes())
        return InstallReceipt(str(found["package"]), str(found["lock"]), str(found["at"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def find_problem(home: Home, agent: AgentDefinition) -> str | None:
    """Why the agent cannot start, and the command that helps. None when it can start."""
    if agent.package is None:
        return None
    receipt = read_receipt(home, agent.name)
    if receipt is None:
        problem = "not installed"
    elif receipt.package != agent.package:
        problem = f"{receipt.package} is installed, but {agent.package} is needed"
    elif is_builtin(agent) and receipt.lock != builtin_version():
        problem = "older than this Freehold"
    elif needs_managed_python(home.agents / agent.name) and not is_python_ready(home):
        problem = "the Python that it runs with is missing"
    else:
        return None
    return f"{problem}: {install_hint(agent)}"


def install_hint(agent: AgentDefinition) -> str:
    return f"freehold agents add {agent.name}"


def install_agent(
    home: Home, agent: AgentDefinition, progress: Progress = lambda what, done, total: None
) -> InstallReceipt:
    """Blocks. Idempotent. Uses what an interrupted installation has downloaded; replaces another version completely."""
    if agent.package is None:
        raise FreeholdError(
            "agent.nothing-to-install",
            f"{agent.title} has no package: its command must exist in the computer",
            hint=f'Set package = "npm:…", "pypi:…" or "archive:…" in [agents.{agent.name}] of freehold.toml',
        )
    with hold_install_lock(home):
        if agent.runtime == "node":
            copy_node(home, progress)
        present = read_receipt(home, agent.name)
        if present is not None and find_problem(home, agent) is None:
            return present
        with replace_agent_folder(home, agent.name) as staging:
            locks = []
            if agent.packages("npm"):
                locks.append(install_npm_agent(home, agent, agent.packages("npm"), staging, progress))
            if agent.packages("pypi"):
                locks.append(install_pypi_agent(home, agent, agent.packages("pypi"), staging, progress))
            for package in agent.packages("archive"):
                locks.append(install_archive_agent(home, package, staging, progress))
            return _write_receipt(staging, agent.package, " ".join(locks))


def install_npm_packages(
    home: Home, name: str, lock: bytes, progress: Progress = lambda what, done, total: None
) -> InstallReceipt:
    """Installs npm packages that are not an agent, exactly as locked, beside the agents. Blocks. Idempotent."""
    digest = f"sha256:{hashlib.sha256(lock).hexdigest()}"
    with hold_install_lock(home):
        copy_node(home, progress)
        present = read_receipt(home, name)
        if present is not None and present.lock == digest:
            return present
        with replace_agent_folder(home, name) as staging:
            wanted = json.loads(lock)["packages"][""]["dependencies"]
            (staging / "package.json").write_text(json.dumps({"private": True, "dependencies": wanted}))
            (staging / "package-lock.json").write_bytes(lock)
            fetch_locked(home, staging, progress)
            return _write_receipt(staging, f"npm:{','.join(wanted)}", digest)


def remove_agent(home: Home, name: str) -> None:
    """Raises `agent.not-found` when the agent is not installed."""
    if read_receipt(home, name) is None:
        raise FreeholdError(
            "agent.not-found", f"{name!a:.80} is not installed", hint="freehold agents lists the agents"
        )
    with hold_install_lock(home):
        gone = Path(tempfile.mkdtemp(prefix=".old-", dir=home.agents))
        (home.agents / name).rename(gone / "agent")
        shutil.rmtree(gone)


def _write_receipt(staging: Path, package: str, lock: str) -> InstallReceipt:
    receipt = InstallReceipt(package, lock, datetime.now(UTC).isoformat(timespec="seconds"))
    (staging / RECEIPT).write_text(json.dumps(asdict(receipt)))
    return receipt
