"""`[history]`: which files are kept, and how much space they may take."""

from pydantic import Field

from freehold.manifest.sections.base import Section
from freehold.manifest.units import Bytes, Moments, Words


class HistorySection(Section):
    """Every state of the persistent folders."""

    folders: Words = Field(default=("workspace", "home"), description="The persistent folders that are recorded.")
    ignore: Words = Field(
        default=(),
        description="Patterns of paths that are not recorded, as in a .gitignore. Agents' own state is never recorded; ignored files cannot be undone.",
        examples=[["*.iso", "workspace/.cache/"]],
    )
    quota: Bytes | None = Field(
        default=None,
        description="Disk that history may use; 5GiB or a tenth of the disk, whichever is less, by default. When it uses more, you are told, and at least ten minutes later the oldest entries are removed for good.",
        examples=["20GiB"],
    )
    rate: Bytes | None = Field(
        default=None,
        description="What one agent may add to history in an hour; half of the quota by default. Beyond it, its new contents are listed but not stored, and you are told.",
        examples=["2GiB"],
    )
    quiet: Moments = Field(
        default=2.0, description="A snapshot is taken after this long without writes, when something changed."
    )
