"""Creates the folders of a home and its run folder, and refuses folders that belong to somebody else."""

import errno
import os

from freehold.errors import FreeholdError
from freehold.home import Home, ensure_private_folder
from freehold.keeper.agent_state import INITIAL_FOLDERS


def prepare_root(home: Home) -> None:
    """The home and the run folder, before anything is written in them."""
    with _ExplainedErrors(home):
        ensure_private_folder(home.root)
        ensure_private_folder(home.run)


def prepare_folders(home: Home) -> None:
    """The folders inside the home. The two that the computer uses keep the mode and owner that the computer sets."""
    with _ExplainedErrors(home):
        for private in (home.history, home.vault, home.agents, home.skills, home.logs):
            ensure_private_folder(private)
        # The computer's uid must read the installed agents and the skills. Nobody else can enter the home.
        home.agents.chmod(0o755)
        home.skills.chmod(0o755)
        fresh = not os.path.lexists(home.agent_home)
        for shared in (home.workspace, home.agent_home):
            shared.mkdir(exist_ok=True, mode=0o700)
            if shared.is_symlink():
                raise FreeholdError(
                    "home.not-ours", f"{shared} is a symbolic link", hint=f"Move it away: mv {shared} {shared}.old"
                )
        if fresh:
            # Later the folder belongs to the computer's uid, and the keeper cannot write there.
            for name in INITIAL_FOLDERS:
                (home.agent_home / name).mkdir(mode=0o700)
        for path in home.vault.iterdir():
            if path.is_file() and not path.is_symlink() and path.stat().st_mode & 0o077:
                path.chmod(0o600)


class _ExplainedErrors:
    """Turns an OSError into a FreeholdError that says which folder cannot be written."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, OSError):
            return
        place = error.filename or str(self._home.root)
        if error.errno == errno.ENOSPC or error.errno == errno.EDQUOT:
            raise FreeholdError(
                "home.full", f"No space left for {place}", hint=f"Free some space: df -h {self._home.root}"
            ) from error
        raise FreeholdError(
            "home.not-writable",
            f"Cannot write {os.fsdecode(place)}: {error.strerror}",
            hint="Make it writable for you, or choose another place with --home",
        ) from error
