"""One version of a skill: its files in memory, bounded, with the hash that names it."""

import hashlib
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from freehold.errors import FreeholdError

if TYPE_CHECKING:
    from freehold.skills.front_matter import FrontMatter

MAX_BYTES = 16 * 1024 * 1024
MAX_FILES = 1000
MAX_PATH = 300
MAX_DEPTH = 12
MAX_INSTRUCTIONS = 512 * 1024
HEAD = "SKILL.md"


@dataclass(frozen=True)
class SkillFile:
    content: bytes
    executable: bool


@dataclass(frozen=True)
class SkillPackage:
    """`files` by their path below the skill's folder, in the order of the paths."""

    files: Mapping[str, SkillFile]

    @cached_property
    def instructions(self) -> str:
        """The whole SKILL.md. Raises `skill.malformed`."""
        found = self.files.get(HEAD)
        if found is None:
            raise FreeholdError("skill.malformed", f"There is no {HEAD} in it")
        if len(found.content) > MAX_INSTRUCTIONS:
            raise FreeholdError("skill.too-big", f"{HEAD} has {len(found.content)} bytes; at most {MAX_INSTRUCTIONS}")
        try:
            return found.content.decode()
        except UnicodeDecodeError:
            raise FreeholdError("skill.malformed", f"{HEAD} is not UTF-8") from None

    @cached_property
    def front_matter(self) -> "FrontMatter":
        # Here, so that the keeper, which compares hashes at boot, loads no parser.
        from freehold.skills.front_matter import read_front_matter

        return read_front_matter(self.instructions)

    @property
    def name(self) -> str:
        return self.front_matter.name

    @cached_property
    def size(self) -> int:
        return sum(len(file.content) for file in self.files.values())

    @cached_property
    def digest(self) -> str:
        """The hash of the whole tree: of every path, whether it is executable, and its content."""
        tree = hashlib.sha256()
        for path, file in self.files.items():
            content = hashlib.sha256(file.content).hexdigest()
            tree.update(f"{'x' if file.executable else '-'} {content} {path}\0".encode())
        return tree.hexdigest()


class PackageBuilder:
    """Collects the files of one skill. Raises `skill.refused` for a name that leads out or hides, and `skill.too-big`."""

    def __init__(self) -> None:
        self._files: dict[str, SkillFile] = {}
        self._folded: set[str] = set()
        self._bytes = 0
        self._entries = 0

    def count_entries(self, number: int) -> None:
        """Of a folder, before its files are added: folders count too, although they are not stored."""
        self._entries += number
        if number > MAX_FILES or self._entries > 2 * MAX_FILES:
            raise FreeholdError("skill.too-big", f"The skill has more than {MAX_FILES} files")

    def add_file(self, path: str, read: Callable[[int], bytes], *, executable: bool) -> None:
        """`read` gives at most as many bytes as asked for, and none at the end."""
        check_file_path(path)
        folded = unicodedata.normalize("NFC", path).casefold()
        if folded in self._folded:
            raise FreeholdError("skill.refused", f"{path[:200]!a} is there twice, at least for some file systems")
        if len(self._files) == MAX_FILES:
            raise FreeholdError("skill.too-big", f"The skill has more than {MAX_FILES} files")
        parts: list[bytes] = []
        while data := read(MAX_BYTES - self._bytes + 1):
            self._bytes += len(data)
            if self._bytes > MAX_BYTES:
                raise FreeholdError("skill.too-big", f"The skill has more than {MAX_BYTES // 1024**2} MiB")
            parts.append(data)
        self._folded.add(folded)
        self._files[path] = SkillFile(b"".join(parts), executable)

    def build(self) -> SkillPackage:
        return SkillPackage({path: self._files[path] for path in sorted(self._files)})


def check_file_path(path: str) -> None:
    parts = path.split("/")
    if len(path) > MAX_PATH or len(parts) > MAX_DEPTH:
        raise FreeholdError("skill.refused", f"{path[:200]!a} is too long or too deep")
    if any(part in ("", ".", "..") for part in parts) or "\\" in path:
        raise FreeholdError("skill.refused", f"{path[:200]!a} leads out of the skill")
    if not path.isprintable() or any(unicodedata.category(one) in ("Cf", "Co", "Cn") for one in path):
        raise FreeholdError("skill.refused", f"{path[:200]!a} has hidden characters")
