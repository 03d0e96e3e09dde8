"""Parts of the built-in agent that need no model and no computer."""

import pytest

from freehold.builtin.context_windows import DEFAULT_WINDOW, find_context_window
from freehold.builtin.patch import apply_patch_text
from freehold.builtin.tool_call import ToolError, shorten

FILES = {"a.py": "one\ntwo\nthree\ntwo\nfour\n", "b.txt": "keep"}


def apply_to_files(patch: str) -> dict[str, str | None]:
    return {outcome.path: outcome.new for outcome in apply_patch_text(patch, FILES.get)}


def test_a_patch_adds_updates_moves_and_deletes() -> None:
    found = apply_to_files(
        "*** Begin Patch\n*** Update File: a.py\n@@ three\n-two\n+2\n*** Add File: c/d.txt\n+new\n+\n"
        "*** Delete File: b.txt\n*** End Patch"
    )
    assert found == {"a.py": "one\ntwo\nthree\n2\nfour\n", "c/d.txt": "new\n\n", "b.txt": None}
    assert apply_to_files("*** Update File: b.txt\n*** Move to: e.txt\n-keep\n+kept") == {
        "b.txt": None,
        "e.txt": "kept",
    }


def test_a_unified_diff_applies_at_its_line_number() -> None:
    """Two places match; the line number decides."""
    assert apply_to_files("--- a/a.py\n+++ b/a.py\n@@ -4,1 +4,1 @@\n-two\n+2\n") == {
        "a.py": "one\ntwo\nthree\n2\nfour\n"
    }
    assert apply_to_files("--- a/a.py\n+++ b/a.py\n@@ -2,1 +2,1 @@\n-two\n+2\n") == {
        "a.py": "one\n2\nthree\ntwo\nfour\n"
    }


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ("nothing", "names no file"),
        ("*** Update File: a.py\n-five\n+5", "does not have these lines"),
        ("*** Update File: none.py\n-x\n+y", "does not exist"),
        ("*** Add File: b.txt\n+x", "exists already"),
        ("*** Update File: a.py\nwithout a mark", "must begin with"),
        ("*** Update File: a.py\n-one\n+1\n*** Delete File: none.txt", "does not exist"),
    ],
)
def test_a_patch_that_does_not_apply_says_why(patch: str, message: str) -> None:
    with pytest.raises(ToolError, match=message):
        apply_patch_text(patch, FILES.get)


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("claude-opus-4-1-20250805", 200_000),
        ("gpt-4o", 128_000),
        ("openai/gpt-4.1-mini-2025", 1_000_000),
        ("qwen3-coder", DEFAULT_WINDOW),
        ("scripted", DEFAULT_WINDOW),
        ("", DEFAULT_WINDOW),
    ],
)
def test_the_window_of_a_model_is_found_by_its_name(model: str, window: int) -> None:
    assert find_context_window(model) == window


def test_a_long_text_keeps_its_begin_and_its_end() -> None:
    assert shorten("a" * 50 + "b" * 50, 20) == "a" * 10 + "\n[… 80 characters are not shown …]\n" + "b" * 10
