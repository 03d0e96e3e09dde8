"""Packages from PyPI, and the built-in agent: wheels only, pinned by hash, without running any of their code."""

import hashlib
import importlib.resources
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from freehold.agents.catalogue.definition import AgentDefinition
from freehold.agents.catalogue.install_command import Progress, run_command
from freehold.computer.contract.conventions import GUEST_PYTHON
from freehold.home import Home

LOCK = "requirements.lock"


def is_builtin(agent: AgentDefinition) -> bool:
    return agent.package == "pypi:freehold-builtin"


def builtin_version() -> str:
    """A hash of the built-in agent's code in this Freehold."""
    with importlib.resources.as_file(importlib.resources.files("freehold") / "builtin") as folder:
        digest = hashlib.sha256()
        for path in sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts):
            digest.update(b"%s\0%s\0" % (str(path.relative_to(folder)).encode(), path.read_bytes()))
        return f"sha256:{digest.hexdigest()}"


def install_pypi_agent(home: Home, agent: AgentDefinition, package: str, staging: Path, progress: Progress) -> str:
    """Installs the package into the staging folder. Returns the hash of its lock.

    A source package would run its own code to be built, so only wheels are accepted.
    """
    site = staging / "site"
    progress("choosing versions", 0, 0)
    if is_builtin(agent):
        _copy_builtin(site)
    else:
        _install_wheels(home, package, staging, site, progress)
    # The folder is read-only inside, so Python could not keep compiled files. Compiling does not run the code.
    run_command([GUEST_PYTHON, "-m", "compileall", "-q", "-s", str(staging), str(site)], staging, lambda: None)
    if is_builtin(agent):
        return builtin_version()
    return f"sha256:{hashlib.sha256((staging / LOCK).read_bytes()).hexdigest()}"


def _install_wheels(home: Home, package: str, staging: Path, site: Path, progress: Progress) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]
    options = ["--only-binary=:all:", f"--target={site}", f"--cache-dir={home.agents / '.cache/pip'}"]
    options.append(f"--python-version={_python_version_inside()}")
    report, lock = staging / "report.json", staging / LOCK
    dry_run = [*pip, "install", "--dry-run", "--quiet", f"--report={report}", *options, package]
    run_command(dry_run, staging, lambda: None)
    lock.write_text("".join(_locked(json.loads(report.read_bytes()))))
    report.unlink()
    total = sum("==" in line for line in lock.read_text().splitlines())

    def report_progress() -> None:
        progress("fetching", len(list(site.glob("*.dist-info"))), total)

    install = [*pip, "install", "--quiet", "--require-hashes", "--no-deps", *options, "-r", str(lock)]
    run_command(install, staging, report_progress)


def _locked(report: dict[str, list[dict[str, dict[str, str]]]]) -> Iterator[str]:
    for one in report["install"]:
        hashes = one["download_info"]["archive_info"]["hashes"]  # type: ignore[index]
        yield f"{one['metadata']['name']}=={one['metadata']['version']} --hash=sha256:{hashes['sha256']}\n"  # type: ignore[index]


def _copy_builtin(site: Path) -> None:
    """The built-in agent needs no package: its code is a part of this Freehold."""
    with importlib.resources.as_file(importlib.resources.files("freehold") / "builtin") as folder:
        shutil.copytree(folder, site / "freehold" / "builtin", ignore=shutil.ignore_patterns("__pycache__"))
    (site / "freehold" / "__init__.py").write_text("")


def _python_version_inside() -> str:
    """The computer uses the host's /usr, whose Python can be another version than this one."""
    command = [GUEST_PYTHON, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
