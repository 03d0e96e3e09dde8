"""`[backup]`: where backups are kept, how soon after a change one is made, and how many are kept."""

from pydantic import Field

from freehold.errors import FreeholdError
from freehold.manifest.sections.base import Section
from freehold.manifest.units import Seconds


class BackupSection(Section):
    """Encrypted backups of everything in this Freehold. Without `to` there are none."""

    to: str = Field(
        default="",
        description="A folder, `s3://BUCKET/FOLDER`, or `sftp://USER@HOST/FOLDER`. One Freehold writes there, and no other.",
        examples=["s3://my-backups/freehold"],
    )
    endpoint: str | None = Field(
        default=None,
        description="The address of the S3 service; that of AWS by default.",
        examples=["https://ACCOUNT.r2.cloudflarestorage.com"],
    )
    region: str | None = Field(default=None, description="The region, for S3.", examples=["eu-central-1"])
    user: str | None = Field(
        default=None, description="The access key ID for S3, or the user for SFTP.", examples=["AKIA…"]
    )
    key: str | None = Field(
        default=None,
        description="Where the secret access key for S3, or the password for SFTP, is kept: `secret:name`. Without it SFTP uses `ssh_key`, or the keys in ~/.ssh.",
        examples=["secret:backup"],
    )
    ssh_key: str | None = Field(
        default=None, description="The file of the private key for SFTP.", examples=["~/.ssh/backup_ed25519"]
    )
    after: Seconds = Field(
        default=300,
        ge=10,
        le=86400,
        description="A backup is made this long after the first change since the last one.",
    )
    hourly: int = Field(default=24, ge=0, le=10_000, description="Keep the last backup of this many hours.")
    daily: int = Field(default=14, ge=0, le=10_000, description="Keep the last backup of this many days.")
    weekly: int = Field(default=26, ge=0, le=10_000, description="Keep the last backup of this many weeks.")

    @property
    def folder(self) -> str | None:
        """The folder of this machine where backups are kept; None if they are kept elsewhere, or nowhere."""
        return self.to if self.to and "://" not in self.to else None

    def require_place(self) -> None:
        """Raises `backup.off` when no place is set."""
        if not self.to:
            raise FreeholdError(
                "backup.off",
                "There is no place for backups",
                hint='Set one in freehold.toml, under [backup]: to = "/mnt/backup/freehold"',
            )
