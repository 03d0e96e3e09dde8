"""Writes YAML that people read: mappings and lists in blocks, and every text that could be something else in quotes."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

YamlValue = str | int | float | bool | Mapping[str, "YamlValue"] | Sequence["YamlValue"]

_PLAIN = re.compile(r"(?:[A-Za-z_/]|\./)[A-Za-z0-9_./-]*")
_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})


def write_documents(trees: Iterable[Mapping[str, YamlValue]]) -> str:
    """Several trees in one file."""
    return "---\n".join(map(write_yaml, trees))


def write_yaml(tree: Mapping[str, YamlValue]) -> str:
    return "".join(f"{line}\n" for line in _write_mapping(tree, ""))


def _write_mapping(tree: Mapping[str, YamlValue], indent: str) -> Iterator[str]:
    for name, value in tree.items():
        yield from _write_value(f"{indent}{_scalar(name)}:", value, indent)


def _write_value(head: str, value: YamlValue, indent: str) -> Iterator[str]:
    if isinstance(value, Mapping):
        if not value:
            yield f"{head} {{}}"
            return
        yield head
        yield from _write_mapping(value, indent + "  ")
    elif isinstance(value, Sequence) and not isinstance(value, str):
        if not value:
            yield f"{head} []"
            return
        yield head
        for item in value:
            yield from _write_item(item, indent + "  ")
    elif isinstance(value, str) and _is_block(value):
        yield f"{head} |"
        yield from (f"{indent}  {line}" if line else "" for line in value[:-1].split("\n"))
    else:
        yield f"{head} {_scalar(value)}"


def _is_block(text: str) -> bool:
    """Whether it can be written line by line and is read as the same text."""
    lines = text[:-1].split("\n")
    return (
        len(lines) > 1
        and text.endswith("\n")
        and not text.startswith((" ", "\n"))
        and lines[-1] != ""
        and all(line.isprintable() for line in lines)
    )


def _write_item(item: YamlValue, indent: str) -> Iterator[str]:
    if isinstance(item, Mapping):
        lines = list(_write_mapping(item, indent + "  "))
        yield f"{indent}- {lines[0].lstrip()}"
        yield from lines[1:]
    else:
        yield f"{indent}- {_scalar(item)}"


def _scalar(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"{value:g}" if isinstance(value, float) else str(value)
    text = str(value)
    return text if _PLAIN.fullmatch(text) and text.lower() not in _WORDS else _quote(text)


def _quote(text: str) -> str:
    """JSON in quotes is YAML, but for a few characters that YAML takes for the end of a line."""
    return "".join(one if one.isprintable() else f"\\U{ord(one):08x}" for one in json.dumps(text, ensure_ascii=False))
