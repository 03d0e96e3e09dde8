"""Skills as folders, archives and repositories, for tests."""

import io
import subprocess
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

HEAD = "---\nname: {name}\ndescription: {description}\n---\n\n# How to\n\nDo it.\n"


def skill_text(name: str = "charts", description: str = "Makes charts.") -> str:
    return HEAD.format(name=name, description=description)


def write_skill(folder: Path, name: str = "charts", files: Mapping[str, bytes] | None = None) -> Path:
    """A folder with a valid SKILL.md and more files. Those that begin with `#!` are executable."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(skill_text(name))
    for path, content in (files or {}).items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        if content.startswith(b"#!"):
            target.chmod(0o755)
    return folder


def write_zip(path: Path, files: Mapping[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as packed:
        for name, content in files.items():
            packed.writestr(name, content)
    return path


def write_tar(path: Path, files: Mapping[str, bytes | tarfile.TarInfo]) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, content in files.items():
            if isinstance(content, tarfile.TarInfo):
                content.name = name
                tar.addfile(content)
                continue
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


def commit_all(repository: Path) -> str:
    """Commit everything in a folder, and return the name of the commit."""
    git = ["git", "-C", str(repository), "-c", "user.name=t", "-c", "user.email=t@example.org"]
    if not (repository / ".git").exists():
        subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "x"], check=True)
    return subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
