"""The terminal shows every part of a permission request, and says what it does not show."""

from typing import Any

from freehold.cli._approval_parts import diff_lines, list_part_lines


def part(kind: str, **more: Any) -> dict[str, Any]:
    empty = {"path": None, "resolved": None, "old": None, "new": None, "runs_by_itself": None, "warning": None}
    return {"kind": kind, "label": kind.capitalize(), "text": "", "hidden_bytes": 0, **empty, **more}


def test_every_part_is_printed_whole() -> None:
    parts = [
        part("command", text="make\n" + "x" * 1000 + "END"),
        part("environment", text="A=1\nB=2"),
        part("path", path="a", resolved="/etc/passwd"),
        part("diff", path="/workspace/.envrc", old="old", new="new", runs_by_itself="an environment"),
        part("text", text="\n".join(str(number) for number in range(500)), hidden_bytes=7),
        part("of-tomorrow", text="something new", warning="careful"),
    ]
    lines = [line.text for line in list_part_lines({"parts": parts})]
    assert [line for line in lines if line.endswith("END")] == ["$ " + "x" * 1000 + "END"]
    for wanted in ("  A=1", "a → /etc/passwd", "-old", "+new", "Runs by itself: an environment", "  499"):
        assert wanted in lines
    assert lines[-3:] == ["Of-tomorrow:", "  something new", "careful"]
    assert "… 7 bytes are not shown" in lines


def test_what_the_owner_must_know_comes_last() -> None:
    approval = {
        "parts": [part("text", text="Bash")],
        "asked_again": True,
        "runs_by_itself": True,
        "names_nothing": True,
        "complete": False,
        "hidden_bytes": 12,
    }
    last = list(list_part_lines(approval))[-4:]
    assert {line.colour for line in last} == {"red"}
    assert last[-1].text == "12 bytes of the request are not shown."


def test_the_owner_is_told_what_a_lasting_answer_allows() -> None:
    effect = "every change of /workspace/a, whatever its content"
    lines = [line.text for line in list_part_lines({"parts": [], "lasting_effect": effect})]
    assert lines == [f"“always” and “for this conversation” allow {effect}."]


def test_a_line_that_looks_like_the_head_of_a_diff_is_shown() -> None:
    """A removed line `-- x` is printed as `--- x`, and an added line `++ x` as `+++ x`."""
    assert [line for line in diff_lines("-- a\nsame", "++ b\nsame") if line[0] in "+-"] == ["--- a", "+++ b"]


def test_equal_texts_are_shown_as_they_are() -> None:
    assert list(diff_lines("evil", "evil")) == ["  evil"]
