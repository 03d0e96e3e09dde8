"""The helpers of remote mounts as a program of the keeper."""

from freehold.features import FeatureProgram
from freehold.manifest.model import Manifest


def plan_program(manifest: Manifest) -> FeatureProgram | None:
    """A program of its own: it reads the keys of the mounts, which the keeper never does."""
    if not manifest.computer.mounts:
        return None  # before the import below: every start of Freehold comes here
    from freehold.computer.mounts.rclone_remote import REMOTE_KINDS

    if not any(mount.kind in REMOTE_KINDS for mount in manifest.computer.mounts):
        return None
    return FeatureProgram(name="mounts", module="freehold.mounts", host="", port=0, probe_socket="mounts.sock")
