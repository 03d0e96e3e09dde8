"""Real runs: a real agent in a throw-away computer, whose changes come back into the workspace and can be undone."""

import asyncio
import json
from typing import Any

import pytest
from playwright.async_api import expect
from tests.support.browser import PHONE, OwnerPage
from tests.support.condition import until
from tests.support.running_freehold import FreeholdOptions, RunningFreehold

from freehold.history.calls import TakeSnapshot
from freehold.identity.tokens import ApiTokens
from freehold.keeper.client import call_keeper
from freehold.slots.orchestrator.contract import PERMISSIONS

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
FREEHOLD = FreeholdOptions(
    agents=("builtin",), manifest='[slots]\norchestrator = "local"\n[agents]\ndefault = "builtin"\n'
)
RUNS = "/v1/slots/orchestrator/runs"


async def spawn(freehold: RunningFreehold, prompt: str, **more: Any) -> dict[str, Any]:
    answer = await freehold.http.post(RUNS, json={"prompt": prompt, **more})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def finish(freehold: RunningFreehold, run: str) -> dict[str, Any]:
    """Waits until the run has finished, and allows what its agent asks."""
    while True:
        found: dict[str, Any] = await freehold.call("GET", f"{RUNS}/{run}")
        if found["finished"] is not None:
            return found
        for asked in await freehold.call("GET", "/v1/approvals"):
            if asked["session"] == found["session"]:
                await freehold.http.post(f"/v1/approvals/{asked['id']}", json={"answer": "once"})
        await asyncio.sleep(0.05)


async def write(freehold: RunningFreehold, path: str, text: str) -> None:
    answer = await freehold.http.put(f"/v1/files/content?path={path}", content=text.encode())
    assert answer.status_code == 200, answer.text


async def test_two_runs_work_in_their_own_copies_and_one_is_merged(freehold: RunningFreehold) -> None:
    await until(freehold.is_connected)
    await freehold.http.post("/v1/files/folder", json={"path": "site"})
    await write(freehold, "site/a.txt", "old")
    first, second = await asyncio.gather(
        spawn(freehold, "WRITE /workspace/site/a.txt from-the-first\nSAY First done.", folder="site"),
        spawn(freehold, "WRITE /workspace/site/b.txt from-the-second\nSAY Second done.", folder="site"),
    )
    done = await asyncio.gather(finish(freehold, first["id"]), finish(freehold, second["id"]))
    assert [one["state"] for one in done] == ["done", "done"], done
    # Neither has touched the workspace, nor the copy of the other.
    assert freehold.file("site/a.txt").read_text() == "old"
    assert not freehold.file("site/b.txt").exists()
    changes = await freehold.call("GET", f"{RUNS}/{first['id']}/changes")
    assert [(one["path"], one["kind"], one["conflict"]) for one in changes["files"]] == [
        ("site/a.txt", "changed", False)
    ]
    assert "+from-the-first" in changes["files"][0]["diff"]
    merged = await freehold.call("POST", f"{RUNS}/{first['id']}/changes", how="merge")
    assert merged["outcome"] == "merged"
    assert freehold.file("site/a.txt").read_text().strip() == "from-the-first"
    dropped = await freehold.call("POST", f"{RUNS}/{second['id']}/changes", how="drop")
    assert dropped["outcome"] == "dropped"
    assert not freehold.file("site/b.txt").exists()


async def test_a_change_of_others_is_not_overwritten(freehold: RunningFreehold) -> None:
    await write(freehold, "both.txt", "old")
    run = await spawn(freehold, "WRITE /workspace/both.txt of-the-run\nSAY Done.", folder=".")
    assert (await finish(freehold, run["id"]))["state"] == "done"
    await write(freehold, "both.txt", "of the owner")
    refused = await freehold.http.post(f"{RUNS}/{run['id']}/changes", json={"how": "merge"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "orchestrator.conflict")
    assert freehold.file("both.txt").read_text() == "of the owner"


async def test_a_run_that_may_not_ask_changes_nothing_and_one_that_is_ended_stops(freehold: RunningFreehold) -> None:
    silent = await spawn(freehold, "WRITE /workspace/x.txt words\nSAY Done.", permissions=["network"])
    found: dict[str, Any] = {}

    async def is_over() -> bool:
        found.update(await freehold.call("GET", f"{RUNS}/{silent['id']}"))
        return found["finished"] is not None

    await until(is_over)
    assert found["added"] == 0
    waiting = await spawn(freehold, "WRITE /workspace/y.txt words\nSAY Done.")

    async def is_asking() -> bool:
        return bool((await freehold.call("GET", f"{RUNS}/{waiting['id']}"))["state"] == "needs_you")

    await until(is_asking)
    await freehold.call("POST", f"{RUNS}/{waiting['id']}/stop")

    async def is_ended() -> bool:
        return bool((await freehold.call("GET", f"{RUNS}/{waiting['id']}"))["state"] == "ended")

    await until(is_ended)


ASK_PORT = (
    """python3 -c 'import socket; s = socket.create_connection(("127.0.0.1", {port}), 5); s.sendall(b"no request" + """
    """b"\\r\\n" * 2); print("answ" + "ered" if s.recv(5) == b"HTTP/" else "silent")'"""
)


async def test_a_run_without_the_permission_has_no_network_and_no_tools_of_slots(freehold: RunningFreehold) -> None:
    async def try_all(**more: Any) -> list[str]:
        commands = (ASK_PORT.format(port=3128), ASK_PORT.format(port=3130), "freehold history-log --limit 1")
        run = await spawn(freehold, "\n".join([*(f"RUN {one}" for one in commands), "SAY Done."]), **more)
        found = await finish(freehold, run["id"])
        assert (found["state"], found["permissions"]) == ("done", more.get("permissions", list(PERMISSIONS)))
        read = await freehold.call("GET", f"{RUNS}/{run['id']}/events?limit=200")
        told = [one["data"] for one in read["events"] if one["kind"] == "tool"]
        return [str(one) for one in told if one["status"] in ("completed", "failed")]

    network, tools, log = await try_all()
    assert "answered" in network
    assert "answered" in tools
    assert "begun without" not in log
    network, tools, log = await try_all(permissions=["ask", "memory"])
    # The port of host tools is served. That of the network is not.
    assert "answered" not in network
    assert "answered" in tools
    assert "history_log: this run was begun without the permission history" in log


async def test_a_run_whose_gateway_was_killed_has_ended_with_its_reason_and_its_changes(
    freehold: RunningFreehold,
) -> None:
    run = await spawn(
        freehold, "WRITE /workspace/kept.txt words\nWRITE /workspace/never.txt words\nSAY Done.", title="Killed"
    )
    copy = freehold.home.copies / f"run-{run['id']}" / "workspace"

    async def list_asked() -> list[str]:
        return [one["id"] for one in await freehold.call("GET", "/v1/approvals") if one["session"] == run["session"]]

    await until(list_asked)
    (first,) = await list_asked()
    await freehold.call("POST", f"/v1/approvals/{first}", answer="once")
    await until(lambda: (copy / "kept.txt").exists())

    async def asks_again() -> bool:
        return first not in (found := await list_asked()) and bool(found)

    await until(asks_again)
    await freehold.kill_gateway()
    found: dict[str, Any] = {}

    async def is_over() -> bool:
        found.update(await freehold.call("GET", f"{RUNS}/{run['id']}"))
        return found["finished"] is not None

    await until(is_over)
    assert (found["state"], found["added"], found["outcome"]) == ("ended", 1, "pending")
    assert "restarted" in found["error"]
    assert found["cost"] is not None
    assert not copy.exists()
    assert (await freehold.call("POST", f"{RUNS}/{run['id']}/changes", how="merge"))["outcome"] == "merged"
    assert freehold.file("kept.txt").read_text().strip() == "words"
    assert not freehold.file("never.txt").exists()
    # The merge is one entry, which can be undone.
    await freehold.call("POST", "/v1/history/undo")
    assert not freehold.file("kept.txt").exists()


async def test_a_run_reaches_neither_the_files_of_the_owner_nor_those_of_another_run(freehold: RunningFreehold) -> None:
    await freehold.http.post("/v1/files/folder", json={"path": "mine"})
    await write(freehold, "mine/a.txt", "a")
    await write(freehold, "private.txt", "hunter2")
    other = await spawn(freehold, "WRITE /workspace/mine/of-the-other.txt hunter3\nSAY Done.", folder="mine")
    await finish(freehold, other["id"])
    home, copies = freehold.home.root, freehold.home.copies
    tries = f"cat /workspace/private.txt {home}/workspace/private.txt /workspace/../private.txt; ls -R {home} {copies}"
    command = f"({tries}; grep -rl hunter /workspace /home /tmp /run /mnt /var --include=*.txt) > /workspace/mine/seen.txt 2>/dev/null"
    run = await spawn(freehold, f"RUN {command}\nSAY Done.", folder="mine")
    assert (await finish(freehold, run["id"]))["state"] == "done"
    changes = await freehold.call("GET", f"{RUNS}/{run['id']}/changes")
    assert [(one["path"], one["size"]) for one in changes["files"]] == [("mine/seen.txt", 0)]


async def test_a_run_begins_with_an_older_state_and_what_came_later_stays(freehold: RunningFreehold) -> None:
    await freehold.http.post("/v1/files/folder", json={"path": "past"})
    for name in ("kept.txt", "deleted.txt"):
        await write(freehold, f"past/{name}", f"{name} at first\n")
    old = (await asyncio.to_thread(call_keeper, freehold.home, TakeSnapshot())).entry
    await write(freehold, "past/kept.txt", "of the owner\n")
    freehold.file("past/deleted.txt").unlink()
    command = "cat /workspace/past/kept.txt /workspace/past/deleted.txt > /workspace/past/seen.txt"
    wanted = {"folder": "past", "entry": old}
    # Without the scope it is not begun, and so is nothing from a state that is not there.
    with ApiTokens(freehold.home.identity, owner=None) as tokens:
        secret = tokens.create("blind", ("read", "prompt", "files", "orchestrator"), None)[1]
    before = await freehold.call("GET", RUNS)
    refused = await freehold.http.post(
        RUNS, json={"prompt": f"RUN {command}", **wanted}, headers={"authorization": f"Bearer {secret}"}
    )
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "identity.wrong-scope")
    for more in ({"entry": old + 1000}, {"entry": 1, "folder": "past"}, {"folder": "not-there"}):
        missing = await freehold.http.post(RUNS, json={"prompt": "SAY Never.", **wanted, **more})
        assert (missing.status_code, missing.json()["error"]["code"]) == (404, "orchestrator.not-found"), missing.text
        assert "freehold log" in missing.json()["error"]["hint"]
    assert await freehold.call("GET", RUNS) == before
    run = await spawn(freehold, f"RUN {command}\nSAY Done.", **wanted, permissions=["ask"])
    done = await finish(freehold, run["id"])
    assert (done["state"], done["entry"], done["added"], done["changed"], done["removed"]) == ("done", old, 1, 0, 0)
    await freehold.call("POST", f"{RUNS}/{run['id']}/changes", how="merge")
    assert freehold.file("past/seen.txt").read_text() == "kept.txt at first\ndeleted.txt at first\n"
    assert freehold.file("past/kept.txt").read_text() == "of the owner\n"
    assert not freehold.file("past/deleted.txt").exists()
    words = ("runs", "spawn", "SAY From the command line.", "--folder", "past", "--json", "--entry")
    for entry, code in ((f"#{old}", 0), (str(old + 1000), 1), ("../1", 2), ("-1", 2)):
        told = await asyncio.to_thread(freehold.harness.run, *words, entry)
        assert told.returncode == code, told.stderr
        if code == 0:
            assert (await finish(freehold, json.loads(told.stdout)["id"]))["entry"] == old
    # The same lines are a conflict, as with any run.
    clash = await spawn(freehold, "WRITE /workspace/past/kept.txt of-the-run\nSAY Done.", **wanted)
    await finish(freehold, clash["id"])
    conflict = await freehold.http.post(f"{RUNS}/{clash['id']}/changes", json={"how": "merge"})
    assert (conflict.status_code, conflict.json()["error"]["code"]) == (409, "orchestrator.conflict")


async def test_the_page_shows_runs_and_merges_them_on_a_phone(freehold: RunningFreehold, owner_page: OwnerPage) -> None:
    page = owner_page.page
    run = await spawn(freehold, "WRITE /workspace/page.txt words\nSAY Done.", title="For the page")
    await finish(freehold, run["id"])
    await page.goto(freehold.pages + "/runs")
    await page.get_by_text("Live", exact=True).wait_for(state="attached")
    await page.set_viewport_size(PHONE)
    await page.get_by_role("button", name="Show changes: For the page").click()
    await expect(page.get_by_role("dialog")).to_contain_text("page.txt")
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    await page.get_by_role("dialog").get_by_role("button", name="Merge").click()
    await until(lambda: freehold.file("page.txt").exists())
    await expect(page.get_by_role("button", name="Show changes: For the page")).to_be_hidden()
    assert freehold.file("page.txt").read_text().strip() == "words"
    await page.set_viewport_size({"width": 1280, "height": 800})


async def test_a_conflict_is_shown_on_the_page_and_overwritten_only_when_the_owner_confirms(
    freehold: RunningFreehold, owner_page: OwnerPage
) -> None:
    page = owner_page.page
    await write(freehold, "conflict.txt", "old\n")
    run = await spawn(freehold, "WRITE /workspace/conflict.txt of-the-run\nSAY Done.", folder=".", title="Conflicting")
    await finish(freehold, run["id"])
    await write(freehold, "conflict.txt", "of the owner\n")
    await page.goto(freehold.pages + "/runs")
    await page.get_by_role("button", name="Show changes: Conflicting").click()
    dialog = page.get_by_role("dialog", name="Conflicting")
    await expect(dialog).to_contain_text("changed by others too")
    await expect(dialog.get_by_role("region", name="Changed lines")).to_contain_text("of-the-run")
    assert freehold.file("conflict.txt").read_text() == "of the owner\n"

    async def is_overwritten() -> bool:
        """A second press confirms, unless it comes too soon or too late."""
        button = dialog.get_by_role("button", name="Overwrite and merge")
        await button.evaluate_all("found => found.forEach((one) => one.click())")
        await page.wait_for_timeout(400)
        return freehold.file("conflict.txt").read_text().strip() == "of-the-run"

    await until(is_overwritten)
    await expect(dialog).to_have_count(0)


async def test_a_run_is_started_on_the_page_and_a_budget_that_nothing_measures_is_refused(
    freehold: RunningFreehold, owner_page: OwnerPage
) -> None:
    """The model of the tests has no price."""
    page = owner_page.page
    await page.goto(freehold.pages + "/runs")
    await page.get_by_label("Task").fill("SAY Started on the page.")
    await expect(page.get_by_label("As of history entry")).to_have_count(0)
    await page.get_by_label("Folder to copy").fill(".")
    await page.get_by_label("As of history entry").fill("1")
    await page.get_by_role("combobox", name="Agent").select_option("builtin")
    await page.get_by_label("Budget in dollars").fill("2.5")
    await page.get_by_text("Permissions: everything").click()
    await page.get_by_label("ask you").uncheck()
    await expect(page.get_by_text("Permissions: all but ask")).to_be_visible()
    await page.get_by_role("button", name="Start run").press("Enter")
    await expect(page.get_by_text("has no known prices, so that a budget cannot be kept")).to_be_visible()
    await page.get_by_label("Budget in dollars").fill("")
    await page.get_by_role("button", name="Start run").press("Enter")
    card = page.get_by_role("listitem").filter(has_text="SAY Started on the page.").first
    await expect(card).to_contain_text("done")
    await expect(card).to_contain_text("copy of the workspace, entry 1")


async def test_a_run_whose_gateway_was_killed_while_it_asked_never_works_in_the_workspace(
    freehold: RunningFreehold,
) -> None:
    run = await spawn(freehold, "WRITE /workspace/escaped.txt words\nSAY Done.")

    async def list_asked() -> list[str]:
        return [one["id"] for one in await freehold.call("GET", "/v1/approvals") if one["session"] == run["session"]]

    await until(list_asked)
    (asked,) = await list_asked()
    await freehold.kill_gateway()

    async def is_over() -> bool:
        return (await freehold.call("GET", f"{RUNS}/{run['id']}"))["finished"] is not None

    await until(is_over)
    assert await list_asked() == []
    answered = await freehold.http.post(f"/v1/approvals/{asked}", json={"answer": "once"})
    assert answered.json()["error"]["code"] == "session.run.conflict"
    prompted = await freehold.http.post(
        f"/v1/sessions/{run['session']}/prompt", json={"text": "RUN touch /workspace/escaped.txt", "key": "again"}
    )
    assert prompted.json()["error"]["code"] == "session.run.conflict"
    assert not freehold.file("escaped.txt").exists()


async def test_changes_that_are_more_than_text_say_so(freehold: RunningFreehold) -> None:
    made = "mkdir -p .git/hooks && ln -s /etc/passwd link && echo x > .git/hooks/pre-commit && chmod 755 .git/hooks/*"
    run = await spawn(freehold, f"RUN cd /workspace && {made} && echo y > plain.txt\nSAY Done.")
    assert (await finish(freehold, run["id"]))["state"] == "done"
    found = await freehold.call("GET", f"{RUNS}/{run['id']}/changes")
    traits = {one["path"]: one["traits"] for one in found["files"]}
    assert (found["total"], traits["link"], traits["plain.txt"]) == (3, ["a link to /etc/passwd"], [])
    program, starts = traits[".git/hooks/pre-commit"]
    assert program == "a program (mode 755)"
    assert starts.startswith("runs by itself: ")
