"""A model proposes a commit message: when the owner asks, from what is staged, and only where that is cheap."""

import pytest
from tests.git.test_repository import make_repository, run_inside, state
from tests.support.running_freehold import FreeholdOptions, RunningFreehold, run_freehold

from freehold.git.commit_message import MAX_ASKED, ask_for_message, read_message

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
FREEHOLD = FreeholdOptions(agents=("builtin",))
NAMES_ANOTHER = '[agents]\nmodel = "dear"\n[models.dear]\nkind = "openai-compatible"\nbase_url = "https://models.example/v1"\nkey = "secret:scripted"\nmodel = "grand"\n'
KEY = "sk-ant-api03-" + "a" * 93 + "AA"


@pytest.mark.parametrize(
    "answer",
    [
        "Add b\n\nIt was missing.",
        "```\nAdd b\n\nIt was missing.\n```",
        "<think>They add b.</think>\n\nAdd b\r\n\r\nIt was missing.\n",
    ],
)
async def test_the_message_is_read_without_thoughts_and_frames(answer: str) -> None:
    assert read_message(answer) == "Add b\n\nIt was missing."


async def test_what_is_hidden_in_a_message_is_shown() -> None:
    assert read_message("Add \u202eb") == "Add ⟨U+202E⟩b"
    assert read_message("<think>nothing else") == ""


async def test_a_long_diff_is_cut_and_keys_in_it_are_masked() -> None:
    asked = ask_for_message(f"+key = {KEY}\n" + "+x\n" * MAX_ASKED)
    assert KEY not in asked
    assert "(The rest is left out.)" in asked
    assert len(asked) < MAX_ASKED + 1_000


@pytest.mark.parametrize("shown", [10, 16, 40, 100])
async def test_a_key_that_the_cut_goes_through_is_masked(shown: int) -> None:
    start = "+x\n" * (MAX_ASKED // 3)
    asked = ask_for_message(f"{start[: MAX_ASKED - shown - 1]}\n{KEY}\n")
    assert KEY[:10] not in asked


async def test_a_model_is_sent_what_is_staged_and_nothing_else(freehold: RunningFreehold) -> None:
    await make_repository(freehold, "note", "a.txt", "b.txt")
    await run_inside(freehold, "cd note && echo staged-line > a.txt && git add -A && echo other-line > b.txt")
    assert (await state(freehold, "note"))["message_model"] == "anthropic/claude-sonnet-4-5"
    asked = len(freehold.model.requests)
    proposed = await freehold.call("POST", "/v1/git/message", folder="note")
    assert proposed == {"message": "Scripted title"}
    (request,) = freehold.model.requests[asked:]
    assert "+staged-line" in str(request.json)
    assert "other-line" not in str(request.json)
    assert (await state(freehold, "note"))["files"], "nothing was committed"


async def test_without_a_staged_change_nobody_is_asked(freehold: RunningFreehold) -> None:
    await make_repository(freehold, "still", "a.txt")
    asked = len(freehold.model.requests)
    refused = await freehold.http.post("/v1/git/message", json={"folder": "still"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "git.nothing-staged")
    assert len(freehold.model.requests) == asked


async def test_a_model_of_an_unknown_price_is_not_asked(tmp_path_factory: pytest.TempPathFactory) -> None:
    options = FreeholdOptions(agents=("builtin",), manifest=NAMES_ANOTHER, is_connected=False)
    async with run_freehold(tmp_path_factory.mktemp("dear"), options) as freehold:
        await make_repository(freehold, "note", "a.txt")
        await run_inside(freehold, "cd note && echo two > a.txt && git add -A")
        assert (await state(freehold, "note"))["message_model"] is None
        refused = await freehold.http.post("/v1/git/message", json={"folder": "note"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "git.no-model")
