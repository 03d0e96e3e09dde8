"""What the owner should know about a skill before it is used: hidden characters, and what its scripts would run."""

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

from freehold.skills.package import HEAD, SkillFile, SkillPackage

MAX_FINDINGS = 50
_SHEBANG = re.compile(rb"#![ \t]*([^\r\n]{1,200})")
_RUNS = {
    ".py": "python3",
    ".sh": "sh",
    ".bash": "bash",
    ".js": "node",
    ".mjs": "node",
    ".cjs": "node",
    ".ts": "node",
    ".rb": "ruby",
    ".pl": "perl",
    ".ps1": "pwsh",
    ".php": "php",
    ".lua": "lua",
    ".awk": "awk",
}
_PROGRAMS = {b"\x7fELF": "a program for Linux", b"MZ": "a program for Windows", b"\0asm": "a WebAssembly module"}
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0\u034f\u17b4\u17b5")
_JOINER = "\u200d"


@dataclass(frozen=True)
class SkillScript:
    """A file that can be run. `runs`: the command that would run it, or the kind of program that it is."""

    path: str
    runs: str
    size: int


@dataclass(frozen=True)
class SkillFinding:
    """`refused`: the skill is not stored. `noted`: the owner is shown it and decides."""

    level: Literal["refused", "noted"]
    path: str
    line: int | None
    words: str


def list_scripts(package: SkillPackage) -> list[SkillScript]:
    found = []
    for path, file in package.files.items():
        runs = _find_runner(path, file)
        if runs is not None:
            found.append(SkillScript(path, runs, len(file.content)))
    return found


def check_package(package: SkillPackage) -> list[SkillFinding]:
    """Raises `skill.malformed` when there is no SKILL.md that can be read; everything else is a finding."""
    front = package.front_matter
    findings = [
        SkillFinding("refused", HEAD, None, f"the {name} has {_tell(char)}")
        for name, text in (("name", front.name), ("description", front.description))
        for char in dict.fromkeys(find_hidden(text))
    ]
    for path, file in package.files.items():
        findings += _check_file(path, file)
        if len(findings) >= MAX_FINDINGS:
            break
    return findings[:MAX_FINDINGS]


def find_hidden(text: str) -> list[str]:
    """Characters that are not drawn, or that change the order in which others are drawn. Emoji may be joined."""
    if text.isascii():
        return [one for one in text if not one.isprintable() and one not in "\n\t\r"]
    return [one for index, one in enumerate(text) if _is_hidden(text, index)]


def _is_hidden(text: str, index: int) -> bool:
    char = text[index]
    if char.isprintable() or char in "\n\t\r\u3000\xa0":
        is_tag = 0xE0100 <= ord(char) <= 0xE01EF
        return char in _BLANK or is_tag
    if char == _JOINER and index and unicodedata.category(text[index - 1]) in ("So", "Sk", "Mn"):
        return False
    return unicodedata.category(char) != "Zs"


def _check_file(path: str, file: SkillFile) -> list[SkillFinding]:
    for mark, words in _PROGRAMS.items():
        if file.content.startswith(mark):
            return [SkillFinding("noted", path, None, f"is {words}: nobody can read what it does")]
    try:
        text = file.content.decode()
    except UnicodeDecodeError:
        return []
    if "\0" in text:
        return []
    findings = []
    # Only "\n": the other characters that end lines are some of those that are looked for.
    for number, line in enumerate(text.split("\n"), 1):
        for char in dict.fromkeys(find_hidden(line.removesuffix("\r"))):
            # Instructions with hidden words are never an accident.
            level: Literal["refused", "noted"] = "refused" if path.endswith(".md") else "noted"
            findings.append(SkillFinding(level, path, number, f"has {_tell(char)}"))
        if len(findings) >= MAX_FINDINGS:
            break
    return findings


def _find_runner(path: str, file: SkillFile) -> str | None:
    for mark, words in _PROGRAMS.items():
        if file.content.startswith(mark):
            return words
    shebang = _SHEBANG.match(file.content)
    if shebang is not None:
        return shebang[1].decode(errors="replace").strip()
    ending = path[path.rfind(".") :].lower() if "." in path.rpartition("/")[2] else ""
    if ending in _RUNS:
        return _RUNS[ending]
    return "sh" if file.executable else None


def _tell(char: str) -> str:
    name = unicodedata.name(char, "a character without a name").lower()
    return f"a hidden character: U+{ord(char):04X}, {name}"
