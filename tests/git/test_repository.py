"""Git in the page: everything is done by git inside the computer, and nothing by git on the host."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.support.condition import until
from tests.support.running_freehold import FreeholdOptions, RunningFreehold

from freehold.computer import Computer

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
FREEHOLD = FreeholdOptions(manifest='[git]\nname = "Ada"\nemail = "ada@example.org"\n')


def git(folder: Path, *arguments: str) -> str:
    """By the test, in a repository that the test made."""
    own = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_COUNT": "1"}
    own |= {"GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
    done = subprocess.run(["git", "-C", folder, *arguments], check=True, capture_output=True, text=True, env=own)
    return done.stdout.strip()


async def make_repository(freehold: RunningFreehold, name: str, *files: str) -> Path:
    """A repository with one commit, made inside."""
    await until(freehold.is_connected)
    made = " && ".join(f"echo one > {file}" for file in files) or "true"
    await run_inside(
        freehold, f"mkdir {name} && cd {name} && {made} && git init -q -b main && git add -A && {COMMIT} first"
    )
    return freehold.file(name)


COMMIT = "git -c user.name=T -c user.email=t@example.org commit -q --allow-empty -m"


async def run_inside(freehold: RunningFreehold, command: str) -> None:
    async with Computer.connect(freehold.home.computer_socket()) as computer:
        (await computer.run(command, cwd="/workspace")).check()


async def state(freehold: RunningFreehold, folder: str) -> Any:
    return await freehold.call("GET", f"/v1/git/state?folder={folder}")


async def letters(freehold: RunningFreehold, folder: str) -> dict[str, tuple[str, str]]:
    return {one["path"]: (one["staged"], one["unstaged"]) for one in (await state(freehold, folder))["files"]}


async def test_files_and_hunks_are_staged_and_committed(freehold: RunningFreehold) -> None:
    folder = await make_repository(freehold, "site", "a.txt", "b.txt")
    assert "site" in (await freehold.call("GET", "/v1/git/repositories"))["folders"]
    found = await state(freehold, "site")
    assert (found["branch"], found["files"], found["branches"]) == ("main", [], ["main"])

    (folder / "a.txt").write_text("one\ntwo\n")
    (folder / "b.txt").write_text("".join(f"line {number}\n" for number in range(30)))
    (folder / "new ü.txt").write_text("new\n")
    assert await letters(freehold, "site") == {"a.txt": ("", "M"), "b.txt": ("", "M"), "new ü.txt": ("", "?")}
    await freehold.call("POST", "/v1/git/stage", folder="site", files=["a.txt", "new ü.txt"], staged=True)
    assert (await letters(freehold, "site"))["new ü.txt"] == ("A", "")
    await freehold.call("POST", "/v1/git/stage", folder="site", files=["new ü.txt"], staged=False)
    assert (await letters(freehold, "site"))["new ü.txt"] == ("", "?")
    unknown = await freehold.call("GET", "/v1/git/diff?folder=site&file=new%20%C3%BC.txt")
    assert "+new" in unknown["text"]

    done = await freehold.call("POST", "/v1/git/commit", folder="site", message="two lines\n\n# not a comment\n")
    assert (
        git(folder, "log", "-1", "--format=%H|%an|%ae|%B")
        == f"{done['commit']}|Ada|ada@example.org|two lines\n\n# not a comment"
    )
    log = await freehold.call("GET", "/v1/git/log?folder=site&limit=1")
    assert [one["subject"] for one in log["commits"]] == ["two lines"]
    assert [
        one["subject"] for one in (await freehold.call("GET", f"/v1/git/log?folder=site&skip={log['next']}"))["commits"]
    ] == ["first"]
    shown = await freehold.call("GET", f"/v1/git/diff?folder=site&commit={done['commit']}")
    assert "+two" in shown["text"]


async def test_one_hunk_of_a_file_is_staged_and_taken_out_again(freehold: RunningFreehold) -> None:
    folder = await make_repository(freehold, "hunks")
    lines = [f"line {number}\n" for number in range(30)]
    (folder / "b.txt").write_text("".join(lines))
    await run_inside(freehold, f"cd hunks && git add -A && {COMMIT} lines")
    (folder / "b.txt").write_text("".join(["first\n", *lines[1:-1], "last\n"]))
    diff = await freehold.call("GET", "/v1/git/diff?folder=hunks&file=b.txt")
    assert diff["is_exact"]
    head, first, _ = split_hunks(diff["text"])
    await freehold.call("POST", "/v1/git/stage-hunk", folder="hunks", patch=head + first, staged=True)
    staged = await freehold.call("GET", "/v1/git/diff?folder=hunks&file=b.txt&side=index")
    assert ("+first" in staged["text"], "+last" in staged["text"]) == (True, False)
    assert await letters(freehold, "hunks") == {"b.txt": ("M", "M")}
    await freehold.call("POST", "/v1/git/stage-hunk", folder="hunks", patch=staged["text"], staged=False)
    assert await letters(freehold, "hunks") == {"b.txt": ("", "M")}
    answer = await freehold.http.post("/v1/git/commit", json={"folder": "hunks", "message": "nothing"})
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "git.not-done"


async def test_a_file_that_was_renamed_is_taken_out_of_the_index_with_both_of_its_names(
    freehold: RunningFreehold,
) -> None:
    """As the page does it. The old name is neither a file nor in the index."""
    await make_repository(freehold, "renamed", "old.txt")
    await run_inside(freehold, "cd renamed && git mv old.txt new.txt")
    (one,) = (await state(freehold, "renamed"))["files"]
    assert (one["path"], one["old_path"], one["staged"]) == ("new.txt", "old.txt", "R")
    names = [one["old_path"], one["path"]]
    await freehold.call("POST", "/v1/git/stage", folder="renamed", files=names, staged=False)
    assert await letters(freehold, "renamed") == {"old.txt": ("", "D"), "new.txt": ("", "?")}


def split_hunks(diff: str) -> list[str]:
    head, *hunks = diff.split("\n@@ ")
    return [f"{head}\n", *(f"@@ {hunk}\n".replace("\n\n", "\n") for hunk in hunks)]


async def test_two_branches_are_checked_out_in_two_folders(freehold: RunningFreehold) -> None:
    folder = await make_repository(freehold, "twice", "a.txt")
    await freehold.call("POST", "/v1/git/switch", folder="twice", branch="feature/x", is_new=True)
    assert (await state(freehold, "twice"))["branch"] == "feature/x"
    await freehold.call("POST", "/v1/git/worktrees", folder="twice", branch="other", is_new=True, place="twice-other")
    assert (freehold.file("twice-other") / "a.txt").read_text() == "one\n"
    trees = {one["folder"]: one["branch"] for one in (await state(freehold, "twice"))["worktrees"]}
    assert trees == {"twice": "feature/x", "twice-other": "other"}
    inner = {"folder": "twice", "branch": "inner", "is_new": True, "place": "twice/trees/inner"}
    await freehold.call("POST", "/v1/git/worktrees", **inner)
    assert await letters(freehold, "twice") == {}, "a worktree inside the repository is ignored"
    (freehold.file("twice-other") / "a.txt").write_text("changed\n")
    body = {"folder": "twice", "place": "twice-other"}
    assert (await freehold.http.post("/v1/git/worktrees/remove", json=body)).status_code == 409
    await freehold.call("POST", "/v1/git/worktrees/remove", folder="twice", place="twice/trees/inner")
    assert not (folder / "trees" / "inner").exists()


async def test_a_hostile_repository_runs_nothing_on_the_host(freehold: RunningFreehold) -> None:
    """Filters, hooks, pagers and the monitor of files are commands. They run inside, where the mark is another file."""
    folder = await make_repository(freehold, "hostile", "a.txt")
    mark = freehold.home.root / "pwned"
    evil = f"touch {mark}; touch /workspace/ran-inside; cat"
    await run_inside(
        freehold,
        f"cd hostile && for name in core.fsmonitor core.pager core.editor core.sshCommand filter.x.clean filter.x.smudge "
        f"diff.external gpg.program; do git config $name {evil!r}; done; git config commit.gpgsign true; "
        f"echo '*.txt filter=x diff=x' > .gitattributes; printf '#!/bin/sh\\n{evil}\\n' > .git/hooks/pre-commit; "
        "chmod +x .git/hooks/pre-commit",
    )
    (folder / "a.txt").write_text("two\n")
    await state(freehold, "hostile")
    await freehold.call("GET", "/v1/git/diff?folder=hostile&file=a.txt")
    await freehold.http.post("/v1/git/stage", json={"folder": "hostile", "files": ["a.txt"], "staged": True})
    await freehold.http.post("/v1/git/commit", json={"folder": "hostile", "message": "x"})
    assert freehold.file("ran-inside").exists(), "the attack was a real one"
    assert not mark.exists()


@pytest.mark.parametrize("folder", ["..", "/etc", "a/../../b", "--upload-pack=x"])
async def test_no_folder_outside_the_workspace_is_a_repository(freehold: RunningFreehold, folder: str) -> None:
    await until(freehold.is_connected)
    answer = await freehold.http.get("/v1/git/state", params={"folder": folder})
    assert answer.json()["error"]["code"] == "files.bad-path"


@pytest.mark.parametrize("branch", ["-x", "a..b", "a b", "a~1", "x.lock", "a:b", "@{1}", ""])
async def test_a_name_that_git_reads_as_something_else_is_no_branch(freehold: RunningFreehold, branch: str) -> None:
    await until(freehold.is_connected)
    answer = await freehold.http.post("/v1/git/switch", json={"folder": ".", "branch": branch, "is_new": True})
    assert answer.status_code == 422


async def test_a_folder_without_a_repository_says_so(freehold: RunningFreehold) -> None:
    await until(freehold.is_connected)
    freehold.file("plain").mkdir()
    answer = await freehold.http.get("/v1/git/state?folder=plain")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "git.missing")
