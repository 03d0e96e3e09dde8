"""The folders of a home and of its run folder: made where missing, refused where they are not ours."""

import errno
import os

from freehold.errors import FreeholdError
from freehold.home import Home, ensure_private_folder
from freehold.keeper.agent_state import MADE


def prepare_root(home: Home) -> None:
    """The home itself, before anything is written in it."""
    with _explained(home):
        ensure_private_folder(home.root)
        ensure_private_folder(home.run)


def prepare_folders(home: Home) -> None:
    """Everything in it. The two that the computer sees keep the mode and owner that the computer gives them."""
    with _explained(home):
        for private in (home.history, home.vault, home.agents, home.logs):
            ensure_private_folder(private)
        # The computer's uid reads what is installed; nobody else comes this far into the home.
        home.agents.chmod(0o755)
        fresh = not os.path.lexists(home.agent_home)
        for shared in (home.workspace, home.agent_home):
            shared.mkdir(exist_ok=True, mode=0o700)
            if shared.is_symlink():
                raise FreeholdError(
                    "home.not-ours", f"{shared} is a link", hint=f"Move it away: mv {shared} {shared}.old"
                )
        if fresh:
            # Later they would not be ours to make: the computer's uid has it then.
            for name in MADE:
                (home.agent_home / name).mkdir(mode=0o700)
        for path in home.vault.iterdir():
            if path.is_file() and not path.is_symlink() and path.stat().st_mode & 0o077:
                path.chmod(0o600)


class _explained:
    """Says in the owner's words why a folder cannot be made or changed."""

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
