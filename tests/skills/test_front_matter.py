"""The head of a SKILL.md is read strictly, and the built-in agent reads the same from it."""

from pathlib import Path
from unittest import mock

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from freehold.builtin.skills import find_skills
from freehold.errors import FreeholdError
from freehold.skills.front_matter import MAX_DESCRIPTION, read_front_matter


def head(lines: str) -> str:
    return f"---\n{lines}\n---\ntext\n"


def test_all_fields_of_the_format_are_read() -> None:
    found = read_front_matter(
        head(
            "name: pdf-tools\ndescription: >\n  Reads PDF files,\n  and writes them.\nlicense: MIT\n"
            "compatibility: needs qpdf\nallowed-tools: Bash(qpdf:*) Read\nmetadata:\n  author: ann\n  version: 1.0"
        )
    )
    assert (found.name, found.description) == ("pdf-tools", "Reads PDF files, and writes them.")
    assert (found.license, found.compatibility) == ("MIT", "needs qpdf")
    assert found.allowed_tools == "Bash(qpdf:*) Read"
    assert found.metadata == {"author": "ann", "version": "1.0"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("name: x\ndescription: y", "does not begin with a head"),
        ("---\nname: x\ndescription: y\n", "does not begin with a head"),
        (head("name: x"), "no description"),
        (head("description: y"), "no name"),
        (head("name: Charts\ndescription: y"), "is not a name"),
        (head("name: ../etc\ndescription: y"), "is not a name"),
        (head("name: a--b\ndescription: y"), "is not a name"),
        (head("name: 7\ndescription: y"), "not a text"),
        (head(f"name: x\ndescription: {'y' * (MAX_DESCRIPTION + 1)}"), "at most 1024"),
        (head("name: x\ndescription: [y]"), "not a text"),
        (head("name: x\ndescription: y\nhooks: rm"), "unknown field 'hooks'"),
        (head("name: x\nname: z\ndescription: y"), "stands twice"),
        (head("- name: x"), "not a list of names"),
        (head("name: &a x\ndescription: *a"), "aliases"),
        (head("name: !!python/object/apply:os.system [id]\ndescription: y"), "not YAML"),
        (head("name: x\ndescription: y\nmetadata:\n  a: {b: c}"), "metadata.a"),
        (head("name: x\ndescription: " + "[" * 5000), "not YAML"),
        (head("name: x\ndescription: y\nlicense: " + "z" * 20_000), "its head has"),
    ],
)
def test_a_head_that_is_not_of_the_format_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(FreeholdError, match=why) as caught:
        read_front_matter(text)
    assert caught.value.code == "skill.malformed"


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused(text: str) -> None:
    for one in (text, head(text), head(f"name: x\ndescription: {text}")):
        try:
            described = read_front_matter(one).description != ""
        except FreeholdError as error:
            described = error.code == "skill.malformed"
        assert described


names = st.from_regex(r"[a-z0-9]{1,8}(-[a-z0-9]{1,8}){0,2}", fullmatch=True).filter(
    lambda name: isinstance(yaml.safe_load(name), str)
)
words = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S"]), min_size=1, max_size=40)


@given(names, st.lists(words, min_size=1, max_size=6))
def test_the_built_in_agent_reads_the_same_name_and_description(
    tmp_path_factory: pytest.TempPathFactory, name: str, parts: list[str]
) -> None:
    description = " ".join(parts)
    text = head(f"name: {name}\ndescription: {description}")
    try:
        found = read_front_matter(text)
    except FreeholdError:
        return
    place = tmp_path_factory.mktemp("cwd")
    folder = place / ".agents/skills" / name
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(text)
    with mock.patch.object(Path, "home", return_value=place / "home"):
        seen = find_skills(place)[name]
    assert seen.name == found.name
    if not description.startswith(("'", '"')) and "#" not in description:
        assert seen.description == found.description[:500]
