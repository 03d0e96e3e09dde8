#!/usr/bin/env python3
"""Checks a folder as a skill, before it is proposed. Lists what is wrong and ends with 1, or says that it is fine."""

import argparse
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
FIELDS = {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
MAX_BYTES = 16 * 1024 * 1024


def read_fields(text: str) -> dict[str, str] | None:
    """None when there is no head. Lines that are indented belong to the field above."""
    if not text.startswith("---\n"):
        return None
    head, found, _ = text[4:].partition("\n---")
    if not found:
        return None
    fields: dict[str, str] = {}
    name = ""
    for line in head.splitlines():
        if line.startswith((" ", "\t")) and name:
            fields[name] += " " + line.strip()
        elif ":" in line:
            name, _, value = line.partition(":")
            name = name.strip()
            fields[name] = value.strip()
    return fields


def check_head(folder: Path) -> Iterator[str]:
    try:
        text = (folder / "SKILL.md").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        yield f"SKILL.md cannot be read: {error}"
        return
    fields = read_fields(text)
    if fields is None:
        yield "SKILL.md does not begin with a head between two lines ---"
        return
    name, description = fields.get("name", ""), fields.get("description", "")
    if not NAME.fullmatch(name) or len(name) > 64:
        yield f"the name {name!r} is not small letters, digits and single hyphens"
    elif name != folder.name:
        yield f"the folder is called {folder.name} and the skill {name}"
    if not 1 <= len(description) <= 1024:
        yield f"the description has {len(description)} characters instead of 1 to 1024"
    for other in sorted(fields.keys() - FIELDS):
        yield f"the head has an unknown field {other}"
    for path in sorted(set(re.findall(r"(?:scripts|references|assets)/[\w./-]*\w", text))):
        if not (folder / path).is_file():
            yield f"SKILL.md names {path}, which is not there"


def check_files(folder: Path) -> Iterator[str]:
    size = 0
    for above, folders, names in os.walk(folder):
        for name in [*folders, *names]:
            path = Path(above) / name
            shown = path.relative_to(folder)
            if path.is_symlink():
                yield f"{shown} is a link"
            elif path.is_file():
                data = path.read_bytes()
                size += len(data)
                if data.startswith(b"#!") and not os.access(path, os.X_OK):
                    yield f"{shown} is a script and not executable: chmod +x"
                for char in sorted(set(data.decode("utf-8", "replace"))):
                    if not char.isprintable() and char not in "\n\r\t":
                        yield f"{shown} has a hidden character U+{ord(char):04X}"
                        break
    if size > MAX_BYTES:
        yield f"all files together have {size} bytes; at most {MAX_BYTES}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder.resolve()
    problems = [*check_head(folder), *check_files(folder)]
    for problem in problems:
        print(problem)
    if not problems:
        print(f"{folder.name} is fine")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
