"""What a build leaves: a root folder, an image for containers and a disk, with a record by which they are checked.

The keeper imports this at boot: it loads nothing that builds.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.images.lock import read_lock
from freehold.images.pool import hash_file
from freehold.images.tree import check_tree
from freehold.strict_json import WrongShape, decode, encode

BUILT = "built"
"""The value of `computer.image` that means the image of this home."""
RECORD = "image.json"
ROOT, ROOT_LIST, ARCHIVE, DISK, BILL = "root", "root.list", "image.tar", "disk.erofs", "sbom.cdx.json"
USED_BY = {"bubblewrap": ROOT, "docker": ARCHIVE, "podman": ARCHIVE, "microvm": DISK}
"""The artifact that each backend starts a computer from."""
ATTACHED = "attached"


@dataclass(frozen=True)
class BuiltFile:
    sha256: str
    size: int


@dataclass(frozen=True)
class ImageRecord:
    """What one build made. `request` and `lock` are the hashes of what it was made from."""

    version: str
    lock: str
    request: str
    config: str
    files: dict[str, BuiltFile]


@dataclass(frozen=True)
class ImageFolder:
    """The images of one home: `pool`, a folder for each build, and the link `current` to the one in use.

    `shared_pool` is a pool elsewhere that is used in the place of its own.
    """

    folder: Path
    lock_path: Path
    shared_pool: Path | None = None

    @property
    def pool(self) -> Path:
        return self.shared_pool or self.folder / "pool"

    @property
    def current(self) -> Path:
        return self.folder / "current"

    def read_record(self, build: Path | None = None) -> ImageRecord | None:
        """The record of a build, or of the current one; None when there is none."""
        path = (build or self.current) / RECORD
        try:
            text = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            return decode(ImageRecord, json.loads(text))
        except (ValueError, WrongShape) as error:
            raise FreeholdError("image.tampered", f"{path} cannot be read: {error}", hint="freehold build") from error

    def write_record(self, folder: Path, record: ImageRecord) -> None:
        (folder / RECORD).write_text(json.dumps(encode(record), indent=1) + "\n")

    def resolve(self, image: str | None, backend: str) -> str | None:
        """What a backend understands in the place of `computer.image`: the artifact for it, if the image is `BUILT`.

        Nothing for a computer that somebody else starts, from an image of his choice.
        """
        if backend == ATTACHED:
            return None
        if image != BUILT:
            return image
        # The build itself and not `current`, which another build may change while the computer starts.
        return str(self.current.resolve() / USED_BY[backend])

    def resolve_checked(self, image: str | None, backend: str) -> str | None:
        """As `resolve`, and raises as `check` does when the image is `BUILT`."""
        found = self.resolve(image, backend)
        if image == BUILT and found is not None:
            self.check(backend, build=Path(found).parent)
        return found

    def check(self, backend: str | None = None, *, build: Path | None = None, thorough: bool = False) -> ImageRecord:
        """Check the artifact of one backend, or all, against the record, and the record against the lock.

        Without `build`, of the build that is the current one when this begins.

        Raises `image.not-built`, `image.changed` when the lock is another one than was built, and `image.tampered`.
        """
        build = build or self.current.resolve()
        record = self.read_record(build)
        if record is None:
            raise FreeholdError(
                "image.not-built",
                'computer.image is "built", and no image was built',
                hint="freehold build, or leave computer.image out to use this machine's own /usr",
            )
        lock = read_lock(self.lock_path)
        if lock is None or lock.digest != record.lock:
            raise FreeholdError(
                "image.changed",
                f"{self.lock_path} changed after the image was built",
                hint="Build it again: freehold build",
            )
        built = [ROOT if name == ROOT_LIST else name for name in record.files]
        for name in built if backend is None else [USED_BY[backend]]:
            self._check_artifact(build, record, name, thorough=thorough)
        return record

    def _check_artifact(self, build: Path, record: ImageRecord, name: str, *, thorough: bool) -> None:
        recorded = record.files.get(ROOT_LIST if name == ROOT else name)
        path = build / (ROOT_LIST if name == ROOT else name)
        if recorded is None:
            raise FreeholdError(
                "image.not-built",
                f"The image was built without {name}",
                hint="Install what the build asks for, then freehold build",
            )
        if not path.is_file() or path.stat().st_size != recorded.size or hash_file(path) != recorded.sha256:
            raise FreeholdError(
                "image.tampered", f"{path} is not what was built", hint="Build it again: freehold build"
            )
        if name == ROOT:
            check_tree(build / ROOT, path, thorough=thorough)
