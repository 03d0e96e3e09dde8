"""Where a Freehold lives: its home folder and its run folder, named once."""

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.places import find_system_folder


@dataclass(frozen=True)
class Home:
    """Paths of one Freehold. Holding one makes no promise that anything exists; `prepare` does."""

    root: Path
    run: Path

    @property
    def manifest(self) -> Path:
        return self.root / "freehold.toml"

    @property
    def workspace(self) -> Path:
        return self.root / "workspace"

    @property
    def agent_home(self) -> Path:
        return self.root / "home"

    @property
    def history(self) -> Path:
        return self.root / "history"

    @property
    def timeline(self) -> Path:
        return self.root / "timeline.db"

    @property
    def vault(self) -> Path:
        return self.root / "vault"

    @property
    def identity(self) -> Path:
        return self.vault / "identity.db"

    @property
    def agents(self) -> Path:
        return self.root / "agents"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def lock(self) -> Path:
        return self.root / "keeper.lock"

    @property
    def keeper_socket(self) -> Path:
        return self.run / "keeper.sock"

    @property
    def computer_socket(self) -> Path:
        return self.run / "computer.sock"

    @property
    def seal(self) -> Path:
        return self.run / "seal.json"


def find_home(chosen: str | Path | None = None) -> Home:
    """The home named by `--home`, else by `FREEHOLD_HOME`, else the usual place for this user."""
    if chosen is None:
        chosen = os.environ.get("FREEHOLD_HOME") or None
    if chosen is not None:
        root = Path(chosen).expanduser()
    elif os.geteuid() == 0:
        root = Path("/var/lib/freehold")
    else:
        data = os.environ.get("XDG_DATA_HOME")
        root = (Path(data) if data else Path.home() / ".local" / "share") / "freehold"
    root = root.absolute()
    return Home(root=root, run=_run_folder(root))


def _run_folder(root: Path) -> Path:
    """Short (socket paths end at 108 bytes) and distinct for every home."""
    name = hashlib.sha256(os.fsencode(root)).hexdigest()[:12]
    if os.geteuid() == 0:
        return Path("/run/freehold") / name
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime:
        return Path(runtime) / "freehold" / name
    return Path(f"/tmp/freehold-{os.geteuid()}") / name  # noqa: S108 - ensure_private_folder refuses one that is not ours


def ensure_private_folder(path: Path) -> None:
    """Make the folder with mode 0700, or refuse one that is a link or belongs to somebody else, or to the machine."""
    system = find_system_folder(path)
    if system is not None:
        raise FreeholdError(
            "home.not-ours",
            f"{path} is a folder of the operating system ({system}), and this one is closed to everybody else",
            hint="Choose a folder of its own with --home, such as ~/freehold",
        )
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise FreeholdError(
            "home.not-ours",
            f"{path} is not a folder owned by uid {os.geteuid()}",
            hint=f"Move it away (mv {path} {path}.old) or choose another place with --home",
        )
    if found.st_mode & 0o077:
        path.chmod(0o700)
