"""Parts of the built-in agent that need no model and no computer."""

import pytest

from freehold.builtin.compaction import compact, count_tokens
from freehold.builtin.context_windows import DEFAULT_WINDOW, find_context_window
from freehold.builtin.conversation import Message, ToolResult, UserImage, UserMessage, UserText
from freehold.builtin.patch import apply_patch_text
from freehold.builtin.tool_call import ToolError, shorten
from freehold.builtin.tool_pictures import MAX_PICTURES, MAX_SENT, OLD, count_pictures, limit_pictures, read_pictures

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


def make_results(count: int) -> list[Message]:
    """A prompt with a picture, and results with one picture each."""
    prompt = UserMessage((UserText("Look"), UserImage("AAAA", "image/png")))
    results = [
        UserMessage((ToolResult(f"c{at}", "look", f"seen {at}"), UserImage(f"{at}", "image/png")))
        for at in range(count)
    ]
    return [prompt, *results]


def test_only_the_newest_pictures_of_tools_are_sent_and_those_of_a_prompt_stay() -> None:
    for count in range(30):
        messages = make_results(count)
        limited = limit_pictures(messages)
        kept = sum(map(count_pictures, limited))
        assert min(count, MAX_SENT // 2) <= kept <= MAX_SENT
        assert limited[0] == messages[0]
        assert limited[len(limited) - kept :] == messages[len(messages) - kept :]
    (first, *_) = limit_pictures(make_results(20))[1:]
    assert first == UserMessage((ToolResult("c0", "look", f"seen 0\n{OLD}"),))


def test_what_is_dropped_stays_the_same_while_several_pictures_come() -> None:
    """Otherwise no request would find the one before in the cache of the provider."""
    dropped = [count - sum(map(count_pictures, limit_pictures(make_results(count)))) for count in range(9, 21)]
    assert dropped == [4] * 4 + [8] * 4 + [12] * 4


async def test_compaction_drops_old_pictures_and_counts_a_picture_by_its_kind() -> None:
    messages = make_results(10)
    assert count_tokens([UserMessage((UserImage("A" * 1_000_000, "image/png"),))]) < 3_000

    async def summarise(_text: str) -> str:
        raise AssertionError("small enough without")

    shorter = await compact(messages, 1_000_000, summarise)
    assert [count_pictures(one) for one in shorter] == [0] * 5 + [1] * 6


def test_of_a_result_only_pictures_are_read() -> None:
    good = {"type": "image", "mimeType": "image/jpeg", "data": "AAAA"}
    bad = [{**good, "mimeType": "text/html"}, {**good, "data": 3}, {**good, "data": ""}, {"type": "text"}, None, 3]
    assert read_pictures([*bad, good]) == (UserImage("AAAA", "image/jpeg"),)
    assert len(read_pictures([good] * 10)) == MAX_PICTURES
