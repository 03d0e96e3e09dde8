"""The replies about backups as frozen objects."""

from datetime import datetime

from freehold.client.models import ApiModel


class LastBackupInfo(ApiModel):
    """The newest backup. `total` is what it restores, `added` what was stored for it, in bytes."""

    number: int
    at: datetime
    checked: datetime
    files: int
    total: int
    added: int
    notes: tuple[str, ...]


class BackupCheckInfo(ApiModel):
    """A verification, or a restore as a trial."""

    at: datetime
    problems: tuple[str, ...]
    packs: int | None
    all_packs: int | None
    number: int | None


class BackupFailureInfo(ApiModel):
    at: datetime
    code: str
    message: str
    hint: str


class RecoveryKeyInfo(ApiModel):
    """The public half of the recovery key, and when the owner last showed that he has it."""

    recipient: str
    made: str
    tried: str | None


class BackupInfo(ApiModel):
    """The state of the backups: `off`, `ok`, `warning` or `failing`. `trouble` says what is wrong."""

    enabled: bool
    to: str
    after: int
    keep: dict[str, int]
    state: str
    trouble: str | None
    running: str | None
    pending: datetime | None
    stored: int | None
    last: LastBackupInfo | None
    failure: BackupFailureInfo | None
    verification: BackupCheckInfo | None
    rehearsal: BackupCheckInfo | None
    recovery_key: RecoveryKeyInfo | None


class StartedBackupWork(ApiModel):
    work: str
