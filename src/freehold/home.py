"""The paths of a Freehold: everything in its home folder and its run folder."""

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.system_folders import find_system_folder

MAIN_COMPUTER = "main"
"""The name of the owner's persistent computer."""


@dataclass(frozen=True)
class Home:
    """The paths of one Freehold. Nothing needs to exist: the keeper creates the folders when it starts."""

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
    def pods(self) -> Path:
        """The owner's documents, when the pods slot is kept here. The computer does not see them."""
        return self.root / "pods"

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
    def images(self) -> Path:
        """What `freehold build` made, and the packages it is made from."""
        return self.root / "images"

    @property
    def skills(self) -> Path:
        """Every version of a skill that is used. The computer sees it read-only."""
        return self.root / "skills"

    @property
    def skill_lock(self) -> Path:
        return self.root / "skills.lock"

    @property
    def mounts(self) -> Path:
        """The unpacked files of mounts that are archives or commits."""
        return self.root / "mounts"

    @property
    def mount_points(self) -> Path:
        """Where remote mounts are mounted, for the computer to bind."""
        return self.run / "mounts"

    def mount_cache(self, identity: tuple[str, ...]) -> Path:
        """Changes of a remote mount that are not sent yet. `identity` is what makes it this mount and no other."""
        return self.root / "mount-cache" / hashlib.sha256(repr(identity).encode()).hexdigest()[:16]

    @property
    def image_lock(self) -> Path:
        return self.root / "freehold.lock"

    @property
    def brain_images(self) -> Path:
        """What `freehold build --brain` made."""
        return self.images / "brain"

    @property
    def brain_lock(self) -> Path:
        return self.root / "freehold-brain.lock"

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
    def temporary_computers(self) -> Path:
        """The folders of computers beside `main`. They are removed when such a computer, or the keeper, has ended."""
        return self.root / "computers"

    @property
    def copies(self) -> Path:
        """Working copies of folders, each with the files of one run. See `history.working_copy`."""
        return self.root / "copies"

    @property
    def kept_homes(self) -> Path:
        """The homes of computers beside `main` that stay when such a computer has ended: profiles of browsers."""
        return self.root / "kept-homes"

    def computer_socket(self, name: str = MAIN_COMPUTER) -> Path:
        """The socket at which the guest of this computer is reached."""
        return self.run / f"computer-{name}.sock"

    @property
    def seal(self) -> Path:
        return self.run / "seal.json"


def find_home(chosen: str | Path | None = None) -> Home:
    """The home given by `--home`, else by `FREEHOLD_HOME`, else the default for this user."""
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
    """Different for every home, and short: the path of a socket may have at most 108 bytes."""
    name = hashlib.sha256(os.fsencode(root)).hexdigest()[:12]
    if os.geteuid() == 0:
        return Path("/run/freehold") / name
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime:
        return Path(runtime) / "freehold" / name
    return Path(f"/tmp/freehold-{os.geteuid()}") / name  # noqa: S108 - ensure_private_folder refuses a folder of another user


def ensure_private_folder(path: Path) -> None:
    """Create the folder with mode 0700. Refuses a link, a folder of another user, and folders of the operating system."""
    system = find_system_folder(path)
    if system is not None:
        raise FreeholdError(
            "home.not-ours",
            f"{path} is a folder of the operating system ({system}), and a home is closed to all other users",
            hint="Choose another folder with --home, such as ~/freehold",
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
