# made from _async/backup.py by python -m tools.generate
"""Backups: `home.backup`."""

from freehold.client._sync.connection import SyncConnection
from freehold.client.backup_models import BackupInfo, StartedBackupWork


class SyncBackup:
    def __init__(self, connection: SyncConnection) -> None:
        self._connection = connection

    def get(self) -> BackupInfo:
        """The last backup, its verification, the state of the recovery key, and what is wrong."""
        return self._connection.get("/v1/backup", BackupInfo)

    def start(self, *, work: str = "now") -> StartedBackupWork:
        """Make a backup now, or with `verify` read backups back. Needs the scope `admin`. `get` says when it has ended."""
        return self._connection.post("/v1/backup/runs", StartedBackupWork, {"work": work})
