"""Manifest checks of `[backup]`."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from freehold.backup.section import BackupSection
from freehold.manifest.checks import CheckFinding, check
from freehold.manifest.facts import MachineFacts
from freehold.manifest.model import Manifest
from freehold.manifest.problem import show_value
from freehold.manifest.secret_text import parse_reference

_LOCAL = ("127.0.0.1", "localhost", "::1")


@check("E761")
def backup_place_unknown(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """`backup.to` is not a folder by its whole path, an `s3://` or an `sftp://` address."""
    to = manifest.section(BackupSection).to
    remote = to.startswith(("s3://", "sftp://"))
    parts = urlsplit(to) if remote else None
    if not to:
        return
    if parts is not None and (not parts.netloc or parts.password is not None or parts.query):
        yield CheckFinding(
            ("backup", "to"),
            f"backup.to is {show_value(to)}, which names no bucket or host",
            'to = "s3://bucket/freehold"',
        )
    elif not remote and not to.startswith(("/", "~/")):
        yield CheckFinding(
            ("backup", "to"),
            f"backup.to is {show_value(to)}, which is no place for backups",
            'to = "/mnt/backup/freehold"',
        )


@check("E762")
def backup_inside_home(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """`backup.to` is in the folder of this Freehold. Who loses the folder would lose the backups with it."""
    to = manifest.section(BackupSection).to
    if to.startswith(("/", "~/")):
        place = facts.real(to)
        if place == facts.home or facts.home in place.parents:
            yield CheckFinding(
                ("backup", "to"), f"backup.to is inside {facts.home}", 'to = "/mnt/backup/freehold", on another disk'
            )


@check("E763")
def backup_key_not_in_vault(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """`backup.key` is not a reference to the vault, or S3 has no key."""
    section = manifest.section(BackupSection)
    reference = parse_reference(section.key) if section.key is not None else None
    if section.key is not None and (reference is None or reference[0] != "secret"):
        yield CheckFinding(("backup", "key"), "backup.key must name a secret of the vault", 'key = "secret:backup"')
    if section.to.startswith("s3://") and (section.key is None or section.user is None):
        yield CheckFinding(
            ("backup", "key" if section.key is None else "user"),
            "S3 needs backup.user and backup.key",
            'user = "AKIA…" and key = "secret:backup" (freehold secret set backup)',
        )


@check("W764")
def backup_without_tls(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """`backup.endpoint` is not HTTPS. Backups are encrypted; who listens learns the access key ID and the sizes."""
    endpoint = manifest.section(BackupSection).endpoint
    if endpoint is not None:
        parts = urlsplit(endpoint)
        if parts.scheme != "https" and (parts.hostname or "") not in _LOCAL:
            yield CheckFinding(
                ("backup", "endpoint"),
                f"backup.endpoint is {show_value(endpoint)}, without TLS",
                "Use an https:// address",
            )
