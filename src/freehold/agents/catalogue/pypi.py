"""Packages from PyPI, and the built-in agent: wheels only, pinned by hash, without running any of their code.

They run with the computer's Python, or with the managed one when they need a newer.
"""

import configparser
import hashlib
import importlib.resources
import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from freehold.agents.catalogue.definition import AgentDefinition
from freehold.agents.catalogue.install_command import Progress, run_command
from freehold.agents.catalogue.managed_python import PYTHON_INSIDE, fetch_python
from freehold.computer.contract.conventions import AGENTS_PATH, GUEST_PYTHON
from freehold.errors import FreeholdError
from freehold.home import Home

LOCK = "requirements.lock"
MANAGED = "managed-python"
"""A file in the folder of an agent that runs with the managed Python."""
_PIP_OPTIONS = ("--disable-pip-version-check", "--no-input")
_NEEDS_OTHER_PYTHON = re.compile("different python version|requires-python", re.IGNORECASE)
_ENTRY = re.compile(
    r"(?P<module>[A-Za-z_][\w.]*):(?P<first>[A-Za-z_]\w*)(?P<rest>(?:\.[A-Za-z_]\w*)*)(?:\s*\[.*\])?", re.ASCII
)
_COMMAND = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
_SCRIPT = """\
#!{python}
import sys

sys.path.insert(0, "{site}")
from {module} import {first}

if __name__ == "__main__":
    sys.exit({first}{rest}())
"""


def is_builtin(agent: AgentDefinition) -> bool:
    return agent.package == "pypi:freehold-builtin"


def builtin_version() -> str:
    """A hash of the built-in agent's code in this Freehold."""
    with importlib.resources.as_file(importlib.resources.files("freehold") / "builtin") as folder:
        digest = hashlib.sha256()
        for path in sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts):
            digest.update(b"%s\0%s\0" % (str(path.relative_to(folder)).encode(), path.read_bytes()))
        return f"sha256:{digest.hexdigest()}"


def install_pypi_agent(
    home: Home, agent: AgentDefinition, packages: Sequence[str], staging: Path, progress: Progress
) -> str:
    """Installs the packages into the staging folder. Returns the hash of their lock.

    A source package would run its own code to be built, so only wheels are accepted.
    """
    site = staging / "site"
    progress("choosing versions", 0, 0)
    if is_builtin(agent):
        _copy_builtin(site)
        _compile(GUEST_PYTHON, site)
        return builtin_version()
    inside = f"{AGENTS_PATH}/{agent.name}/site"
    try:
        _install_wheels(_system_pip(home), packages, staging, site, progress)
    except FreeholdError as error:
        if not _NEEDS_OTHER_PYTHON.search(error.message):
            raise
        python = fetch_python(home, progress)
        progress("choosing versions", 0, 0)
        _install_wheels(_managed_pip(home, python), packages, staging, site, progress)
        _write_scripts(site, staging / "bin", inside, PYTHON_INSIDE)
        _compile(str(python), site)
        (staging / MANAGED).touch()
    else:
        _write_scripts(site, staging / "bin", inside, GUEST_PYTHON)
        _compile(GUEST_PYTHON, site)
    return f"sha256:{hashlib.sha256((staging / LOCK).read_bytes()).hexdigest()}"


def needs_managed_python(folder: Path) -> bool:
    """Whether the agent that is installed in this folder runs with the managed Python."""
    return (folder / MANAGED).exists()


def _compile(python: str, site: Path) -> None:
    """The folder is read-only inside, so Python could not keep compiled files. Compiling does not run the code."""
    # A package may have a template that is no Python; it is then not compiled, and compileall says so by its exit code.
    code = f"import compileall; compileall.compile_dir({str(site)!r}, quiet=2, stripdir={str(site.parent)!r})"
    run_command([python, "-I", "-c", code], site.parent, lambda: None)


def _system_pip(home: Home) -> list[str]:
    pip = [sys.executable, "-m", "pip", *_PIP_OPTIONS, "install", f"--cache-dir={home.agents / '.cache/pip'}"]
    return [*pip, f"--python-version={_python_version_inside()}"]


def _managed_pip(home: Home, python: Path) -> list[str]:
    """pip of this Freehold, run by the Python for which it chooses: what packages need depends on it."""
    found = importlib.util.find_spec("pip")
    runner = str(Path(str(found.origin)).with_name("__pip-runner__.py")) if found else ""
    return [str(python), runner, *_PIP_OPTIONS, "install", f"--cache-dir={home.agents / '.cache/pip'}"]


def _install_wheels(pip: list[str], packages: Sequence[str], staging: Path, site: Path, progress: Progress) -> None:
    options = ["--only-binary=:all:", f"--target={site}"]
    report, lock = staging / "report.json", staging / LOCK
    dry_run = [*pip, "--dry-run", "--quiet", f"--report={report}", *options, *packages]
    run_command(dry_run, staging, lambda: None)
    lock.write_text("".join(_locked(json.loads(report.read_bytes()))))
    report.unlink()
    total = sum("==" in line for line in lock.read_text().splitlines())

    def report_progress() -> None:
        progress("fetching", len(list(site.glob("*.dist-info"))), total)

    install = [*pip, "--quiet", "--require-hashes", "--no-deps", *options, "-r", str(lock)]
    run_command(install, staging, report_progress)


class _EntryPoints(configparser.ConfigParser):
    def optionxform(self, optionstr: str) -> str:
        """Names are kept as they are."""
        return optionstr


def _write_scripts(site: Path, folder: Path, inside: str, python: str) -> None:
    """The commands that packages declare. Those that pip writes name the Python of the host and are of no use inside."""
    shutil.rmtree(site / "bin", ignore_errors=True)
    folder.mkdir()
    for declared in sorted(site.glob("*.dist-info/entry_points.txt")):
        points = _EntryPoints(delimiters=("=",), interpolation=None, strict=False)
        try:
            points.read_string(declared.read_text())
        except (configparser.Error, UnicodeDecodeError):
            continue
        if not points.has_section("console_scripts"):
            continue
        for name, target in points["console_scripts"].items():
            found = _ENTRY.fullmatch(target.strip())
            if found is not None and _COMMAND.fullmatch(name):
                script = folder / name
                script.write_text(_SCRIPT.format(python=python, site=inside, **found.groupdict()))
                script.chmod(0o755)


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
