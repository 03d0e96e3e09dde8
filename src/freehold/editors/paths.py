"""Paths of the workspace, as the computer and as the editor know them."""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from freehold.computer.contract.conventions import WORKSPACE


@dataclass(frozen=True)
class EditorPaths:
    """`folder` is where the editor has the workspace; None when it is on another machine."""

    folder: Path | None = None

    def to_editor(self, path: str) -> str:
        if self.folder is None or not (path == WORKSPACE or path.startswith(f"{WORKSPACE}/")):
            return path
        return f"{self.folder}{path.removeprefix(WORKSPACE)}"

    def to_computer(self, path: str) -> str | None:
        """None for a file that is not in the workspace: no agent can see it."""
        if path == WORKSPACE or path.startswith(f"{WORKSPACE}/"):
            return path
        if self.folder is not None and (path == str(self.folder) or path.startswith(f"{self.folder}/")):
            return f"{WORKSPACE}{path.removeprefix(str(self.folder))}"
        return None

    def read_address(self, address: str) -> str | None:
        """The path in the computer of a `file:` address. None as above."""
        parts = urlsplit(address)
        return self.to_computer(unquote(parts.path)) if parts.scheme == "file" else None
