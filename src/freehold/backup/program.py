"""The backups as a program of the keeper."""

from freehold.backup.section import BackupSection
from freehold.features import FeatureProgram
from freehold.manifest.model import Manifest


def plan_program(manifest: Manifest) -> FeatureProgram | None:
    """A program of its own: it reads the key of the store, which the keeper never does, and its work slows nobody."""
    if not manifest.section(BackupSection).to:
        return None
    return FeatureProgram(name="backup", module="freehold.backup", host="", port=0, probe_socket="backup.sock")
