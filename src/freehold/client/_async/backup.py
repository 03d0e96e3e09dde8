"""Backups: `home.backup`."""

from freehold.client._async.connection import AsyncConnection
from freehold.client.backup_models import BackupInfo, StartedBackupWork


class AsyncBackup:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def get(self) -> BackupInfo:
        """The last backup, its verification, the state of the recovery key, and what is wrong."""
        return await self._connection.get("/v1/backup", BackupInfo)

    async def start(self, *, work: str = "now") -> StartedBackupWork:
        """Make a backup now, or with `verify` read backups back. Needs the scope `admin`. `get` says when it has ended."""
        return await self._connection.post("/v1/backup/runs", StartedBackupWork, {"work": work})
