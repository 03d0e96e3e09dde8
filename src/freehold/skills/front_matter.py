"""The head of a SKILL.md, as the Agent Skills format describes it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from freehold.skills.name import MAX_NAME, check_skill_name, malformed

MAX_HEAD = 16 * 1024
MAX_DESCRIPTION = 1024
MAX_COMPATIBILITY = 500
MAX_LICENSE = 500
MAX_TOOLS = 2000
MAX_METADATA = 50
_FENCE = re.compile(r"^---[ \t]*$", re.MULTILINE)
_FIELDS = frozenset({"name", "description", "license", "compatibility", "metadata", "allowed-tools"})


@dataclass(frozen=True)
class FrontMatter:
    """`allowed_tools` is what the author thinks it needs. It allows nothing here: the owner's rules do."""

    name: str
    description: str
    license: str | None = None
    compatibility: str | None = None
    allowed_tools: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)


def read_front_matter(text: str) -> FrontMatter:
    """Raises `skill.malformed` with the field and what is wrong with it."""
    head = _find_head(text)
    try:
        found = yaml.load(head, Loader=_PlainLoader)  # noqa: S506 - a subclass of SafeLoader
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise malformed(f"its head is not YAML: {_first_line(error)}") from error
    if not isinstance(found, dict):
        raise malformed("its head is not a list of names and values")
    unknown = sorted(str(name) for name in found if name not in _FIELDS)
    if unknown:
        raise malformed(f"it has an unknown field {unknown[0][:80]!a}", f"The fields are: {', '.join(sorted(_FIELDS))}")
    return FrontMatter(
        check_skill_name(_read_text(found, "name", MAX_NAME)),
        _read_text(found, "description", MAX_DESCRIPTION),
        _read_optional(found, "license", MAX_LICENSE),
        _read_optional(found, "compatibility", MAX_COMPATIBILITY),
        _read_tools(found.get("allowed-tools")),
        _read_metadata(found.get("metadata")),
    )


class _PlainLoader(yaml.SafeLoader):
    """Values without aliases, which can grow without bounds, and without a name that stands twice."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not allowed")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        names = [self.construct_object(name, deep=True) for name, _ in node.value]
        if not all(isinstance(name, str) for name in names):
            raise yaml.YAMLError("a name is not a text")
        if len(set(names)) != len(names):
            raise yaml.YAMLError("a name stands twice")
        return super().construct_mapping(node, deep=deep)


def _find_head(text: str) -> str:
    first = _FENCE.match(text)
    second = first and _FENCE.search(text, first.end())
    if first is None or second is None:
        raise malformed("it does not begin with a head between two lines ---", "---\nname: …\ndescription: …\n---")
    head = text[first.end() : second.start()]
    if len(head) > MAX_HEAD:
        raise malformed(f"its head has {len(head)} characters; it has at most {MAX_HEAD}")
    return head


def _read_text(found: Mapping[str, Any], name: str, longest: int) -> str:
    if name not in found:
        raise malformed(f"it has no {name}")
    value = found[name]
    if not isinstance(value, str) or not value.strip():
        raise malformed(f"{name} is not a text")
    if len(value.strip()) > longest:
        raise malformed(f"{name} has {len(value.strip())} characters; it has at most {longest}")
    return value.strip()


def _read_optional(found: Mapping[str, Any], name: str, longest: int) -> str | None:
    return None if found.get(name) is None else _read_text(found, name, longest)


def _read_tools(value: object) -> str | None:
    """A text, or a list of texts, which some authors write."""
    if value is None:
        return None
    given = value if isinstance(value, list) else [value]
    words = [one for one in given if isinstance(one, str)]
    if len(words) != len(given):
        raise malformed("allowed-tools is not a text")
    text = " ".join(words).strip()
    if len(text) > MAX_TOOLS:
        raise malformed(f"allowed-tools has {len(text)} characters; it has at most {MAX_TOOLS}")
    return text or None


def _read_metadata(value: object) -> Mapping[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict) or len(value) > MAX_METADATA:
        raise malformed(f"metadata is not a list of at most {MAX_METADATA} names and values")
    for name, one in value.items():
        if not isinstance(one, str | int | float | bool):
            raise malformed(f"metadata.{name[:80]} is not a text")
    return {name: str(one) for name, one in value.items()}


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
