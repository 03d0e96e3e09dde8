"""The check of names finds what a stranger stumbles over, and its list can only shrink."""

from pathlib import Path

from tools.names import (
    find_gerund_modules,
    find_long_functions,
    find_problems,
    find_shared_classes,
    read_definitions,
)

NOTHING: dict[str, list[str]] = {"shared_classes": [], "gerund_modules": [], "long_functions": []}


def write(folder: Path, **modules: str) -> None:
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)


def test_a_public_class_in_two_modules_is_found_and_a_private_one_is_not(tmp_path: Path) -> None:
    write(
        tmp_path,
        one="class Entry: ...\nclass _Row: ...",
        two="class Entry: ...\nclass _Row: ...",
        three="class Row: ...",
    )
    assert find_shared_classes(list(read_definitions(tmp_path))) == {"Entry": ["one.py", "two.py"]}


def test_a_module_named_by_a_gerund_is_found_and_a_noun_in_ing_is_not(tmp_path: Path) -> None:
    write(tmp_path, taking="", testing="", snapshot="", routing="")
    assert find_gerund_modules(tmp_path) == ["taking.py"]


def test_a_function_of_more_than_60_lines_is_found(tmp_path: Path) -> None:
    body = "\n".join("    pass" for _ in range(61))
    write(tmp_path, long=f"def fits():\n    pass\n\nasync def grown():\n{body}\n")
    assert find_long_functions(list(read_definitions(tmp_path))) == ["long.py:grown"]


def test_a_new_name_and_a_name_that_is_gone_are_both_problems() -> None:
    found, allowed = {**NOTHING, "shared_classes": ["New"]}, {**NOTHING, "shared_classes": ["Old"]}
    new, gone = find_problems(found, allowed)
    assert "New is new" in new
    assert "Old is gone" in gone


def test_the_list_cannot_grow_beyond_its_limit() -> None:
    names = [f"Class{number}" for number in range(16)]
    (problem,) = find_problems({**NOTHING, "shared_classes": names}, {**NOTHING, "shared_classes": names})
    assert "at most 15" in problem
