"""Change the manifest while Freehold runs: in the file itself, or in its overlay when it cannot be written."""

import errno
import os
import re
from collections.abc import Mapping
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.manifest.edit import Plain, edit_manifest_keys, with_changes
from freehold.manifest.facts import MachineFacts
from freehold.manifest.loader import check_source
from freehold.manifest.overlay import LIVE_SECTIONS, overlay_path, read_overlay
from freehold.manifest.reader import ManifestSource, read_source

_GENERATED = re.compile(r"\A(?:#[^\n]*\n){0,5}?#\s*freehold:\s*generated\b")
_UNWRITABLE = frozenset({errno.EROFS, errno.EACCES, errno.EPERM, errno.EBUSY})
"""How replacing a file fails when it, or its folder, is read-only, or when it is a mount of its own."""


def change_manifest(path: Path, changes: Mapping[str, Plain | None], environ: Mapping[str, str]) -> Path:
    """Change keys in one step, and keep everything else as it was written. Returns the file that changed.

    Raises `manifest.bad-value` when the manifest would have an error that it does not have now: nothing is written.
    A key that the overlay has is changed there, because it would win.
    """
    overlay = overlay_path(path)
    _refuse_new_errors(path, changes, environ)
    if not _is_generated(path) and not _has_any(read_source(overlay).tree, changes):
        try:
            edit_manifest_keys(path, changes)
        except OSError as error:
            if error.errno not in _UNWRITABLE:
                raise
        else:
            return path
    for key in changes:
        if key.partition(".")[0] not in LIVE_SECTIONS:
            raise FreeholdError(
                "manifest.cannot-edit",
                f"{key} cannot be changed: {path.name} cannot be written, and an overlay may not have it",
                hint=f"Change {path.name} where it comes from",
            )
    edit_manifest_keys(overlay, changes)
    return overlay


def can_remove(path: Path, section: str, name: str) -> bool:
    """Whether a table can be taken out. One of a manifest that cannot be written, or that both files have, can only be
    overruled."""
    if not _has_any(read_source(path).tree, {f"{section}.{name}": None}):
        return True
    if _has_any(read_overlay(path).tree, {f"{section}.{name}": None}):
        return False
    real = Path(os.path.realpath(path))
    return not _is_generated(path) and os.access(real, os.W_OK) and os.access(real.parent, os.W_OK)


def _is_generated(path: Path) -> bool:
    """Whether the manifest says `# freehold: generated` in its first lines: another program writes it again."""
    return _GENERATED.match(read_source(path).text) is not None


def _refuse_new_errors(path: Path, changes: Mapping[str, Plain | None], environ: Mapping[str, str]) -> None:
    facts = MachineFacts.gather(path.absolute().parent, environ)
    source, overlay = read_source(path), read_overlay(path)
    known = {(problem.code, problem.key) for problem in check_source(source, facts, overlay).errors}
    changed = ManifestSource(source.path, with_changes(source.tree, changes), source.text, source.problems)
    above = ManifestSource(overlay.path, with_changes(overlay.tree, changes), overlay.text, overlay.problems)
    if not _has_any(overlay.tree, changes):
        above = overlay
    for problem in check_source(changed, facts, above).errors:
        if (problem.code, problem.key) not in known:
            raise FreeholdError("manifest.bad-value", problem.message, hint=problem.hint)


def _has_any(tree: Mapping[str, object], changes: Mapping[str, object]) -> bool:
    """Whether the tree has one of the keys, or something below one."""
    for key in changes:
        at: object = tree
        for part in key.split("."):
            at = at.get(part) if isinstance(at, dict) else None
        if at is not None:
            return True
    return False
