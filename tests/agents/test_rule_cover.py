"""A permission rule covers a call only when Freehold understands all of it: every file that the call names, and where."""

import json
import re
from posixpath import normpath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.agents.sessions.call_input import read_input
from freehold.agents.sessions.patch_headers import find_patched_paths
from freehold.agents.sessions.permission_request import AskedCall, PermissionRequest, build_request, describe_paths
from freehold.agents.sessions.permission_rules import Effect, PermissionRule, decide
from freehold.agents.sessions.real_paths import RealPath
from freehold.computer.contract.conventions import WORKSPACE

Json = dict[str, Any]
FILE_KINDS = ("read", "edit", "delete", "move", "search")
OK = {"locations": [{"path": "/workspace/ok.txt"}]}
PATCH = "*** Begin Patch\n*** Add File: .git/hooks/pre-commit\n+evil\n*** End Patch"


def make_request(call: Json, more: Json | None = None, folder: str = WORKSPACE) -> PermissionRequest:
    """As the gate does, on a computer without links, for an agent that works in this folder."""
    asked = AskedCall("t1", call, more or {}, folder=folder)
    written, _ = asked.list_paths()
    real = [RealPath(normpath(asked.find_absolute(path))) for path in written]
    return build_request(asked, describe_paths(asked, real), asked_again=False)


def judge(request: PermissionRequest, *rules: PermissionRule) -> Effect:
    return decide(rules, request.kind, request.subjects, exact_only=request.exact_only, aliases=request.aliases)


def judge_in_folder(call: Json, more: Json | None = None) -> Effect:
    request = make_request(call, more)
    return judge(request, PermissionRule("allow", request.kind, "/workspace/*"))


def in_input(raw: object) -> Json:
    return {"kind": "edit", "title": "Edit", "rawInput": raw, **OK}


@pytest.mark.parametrize(
    "call",
    [
        in_input({"patchText": PATCH}),
        in_input({"input": PATCH}),
        in_input(PATCH),
        in_input([PATCH]),
        in_input("rm -rf ~"),
        in_input(["rm", "-rf"]),
        in_input({"patch": " *** Add File: .envrc\n"}),
        in_input({"patch": "*** Add File:.envrc\n"}),
        in_input({"patch": "*** Add File: .envrc:x\n"}),
        in_input({"patch": "x\r*** Add File: .envrc\r"}),
        in_input({"patch": '--- /dev/null\n+++ "b/\\056envrc"\n'}),
        in_input({"patch": '--- /dev/null\n+++ "b/broken\n'}),
        in_input({"patch": "diff --git a/.envrc b/.envrc\nGIT binary patch\n"}),
        in_input({"patch": 'diff --git "a/\\056envrc" "b/\\056envrc"\n'}),
        in_input({"patch": "diff --git a/x y b/z .envrc\n"}),
        in_input({"patch": "Index: .envrc\n"}),
        in_input({"path": "/workspace/a.txt", "output": ".git/hooks/pre-commit"}),
        in_input({"path": "/workspace/a.txt", "content": "x", "post": {"run": "evil"}}),
        in_input({"name": ".envrc"}),
        in_input({"post_command": "rm -rf ~"}),
        in_input({"post_command": "/workspace/evil.sh"}),
        in_input({"code": "evil()"}),
        in_input({"edits": [{"command": "evil"}]}),
        in_input({"file_path": ".git/hooks/pre-commit\n"}),
        in_input({"file_path": "a://../.envrc"}),
        in_input({"file_path": "https://../.envrc"}),
        in_input({"file_path": "~agent/secret"}),
        in_input({"file_path": "$HOME/secret"}),
        in_input({"file_path": ".git\\hooks\\pre-commit"}),
        in_input({"changes": {"Makefile": {}, "../x": {}}}),
        in_input({"cwd": "/workspace/repo/hooks", "file_path": "pre-commit"}),
        in_input({"directory": "/workspace/repo/hooks", "file_path": "pre-commit"}),
        in_input({"cwd": "/workspace/repo/hooks", "files": {"pre-commit": True}}),
        in_input({"edits": [{"workdir": "/workspace/repo/hooks", "file_path": "pre-commit"}]}),
        in_input({"cwd": "/workspace/a", "workdir": "/workspace/b", "file_path": "/workspace/a/x"}),
        in_input({"cwd": "/etc", "file_path": "/workspace/x"}),
        {"kind": "search", "rawInput": {"pattern": "/etc/*"}, **OK},
        {"kind": "search", "rawInput": {"pattern": "x/../../etc/*"}, **OK},
        {"kind": "search", "rawInput": {"pattern": "x", "cwd": "/etc"}, **OK},
        {"kind": "edit", "content": [{"type": "content", "content": {"type": "text", "text": " " + PATCH}}], **OK},
        {"kind": "edit", "content": [{"type": "content", "content": {"type": "text", "text": '+++ "x'}}], **OK},
        {"kind": "edit", "command": "rm -rf ~", **OK},
        {"kind": "edit", "_meta": {"command": "rm -rf ~"}, **OK},
        {"kind": "edit", "_meta": {"claudeCode": {"run": "rm -rf ~"}}, **OK},
        {"kind": "edit", "_meta": "rm -rf ~", **OK},
        {"kind": "edit", "title": ["rm -rf ~"], **OK},
        {"kind": "edit", "locations": [{"path": "/workspace/ok.txt", "run": "rm -rf ~"}]},
    ],
    ids=lambda call: json.dumps({name: value for name, value in call.items() if name not in ("locations", "title")})[:90],
)  # fmt: skip
def test_a_rule_for_a_folder_covers_no_call_that_could_name_another_file(call: Json) -> None:
    assert judge_in_folder(call) == "ask"


@pytest.mark.parametrize("more", [{"command": "rm -rf ~"}, {"_meta": {"run": "rm -rf ~"}}, {"_meta": ["rm"]}])
@pytest.mark.parametrize("kind", FILE_KINDS)
def test_a_rule_for_a_folder_covers_nothing_beside_the_call(kind: str, more: Json) -> None:
    assert judge_in_folder({"kind": kind, **OK}) == "allow"
    assert judge_in_folder({"kind": kind, **OK}, more) == "ask"


@pytest.mark.parametrize("raw", ["x", ["x"], {"unknown": "x"}, {"nested": [{"unknown": "x"}]}], ids=str)
@pytest.mark.parametrize("kind", FILE_KINDS)
def test_an_input_that_is_not_understood_is_asked_for_every_kind(kind: str, raw: object) -> None:
    assert judge_in_folder({"kind": kind, "rawInput": raw, **OK}) == "ask"


_DIFF = {"type": "diff", "path": "/workspace/a.py", "oldText": "a", "newText": "b"}
_TEXT = {"type": "content", "content": {"type": "text", "text": "Replaces a"}}


@pytest.mark.parametrize(
    "call",
    [
        # Claude Code
        {
            "kind": "edit",
            "title": "Edit `/workspace/a.py`",
            "rawInput": {"file_path": "/workspace/a.py", "old_string": "a", "new_string": "b", "replace_all": False},
            "content": [_DIFF],
            "locations": [{"path": "/workspace/a.py", "line": 3}],
            "_meta": {"claudeCode": {"toolName": "Edit"}},
        },
        {"kind": "edit", "rawInput": {"file_path": "/workspace/a.py", "content": "--- \n/etc/x\n"}, "content": [_DIFF]},
        {
            "kind": "edit",
            "rawInput": {"file_path": "/workspace/a.py", "edits": [{"old_string": "/etc", "new_string": "rm -rf ~"}]},
        },
        {
            "kind": "edit",
            "rawInput": {
                "notebook_path": "/workspace/a.ipynb",
                "cell_id": "c1",
                "new_source": "import os\n/x",
                "cell_type": "code",
                "edit_mode": "replace",
            },
        },
        {"kind": "read", "rawInput": {"file_path": "/workspace/a.py", "offset": 1, "limit": 200}},
        {
            "kind": "search",
            "rawInput": {
                "pattern": r"def \w+",
                "path": "/workspace/src",
                "glob": "*.py",
                "type": "py",
                "output_mode": "content",
                "-n": True,
                "-C": 3,
                "head_limit": 20,
                "multiline": False,
            },
        },
        {"kind": "search", "rawInput": {"pattern": "**/*.ts", "path": "/workspace/web"}},
        # Codex
        {
            "kind": "edit",
            "title": "Edit /workspace/a.py",
            "rawInput": {
                "call_id": "c1",
                "turn_id": "1",
                "changes": {
                    "/workspace/a.py": {"type": "update", "unified_diff": "@@ -1 +1 @@\n-a\n+b\n", "move_path": None},
                    "/workspace/b.py": {"type": "add", "content": "x"},
                },
                "reason": None,
                "grant_root": None,
            },
            "content": [_DIFF],
            "locations": [{"path": "/workspace/a.py"}, {"path": "/workspace/b.py"}],
        },
        # opencode: the input of the call, joined with what the request says
        {
            "kind": "edit",
            "title": "edit",
            "rawInput": {
                "filePath": "/workspace/a.py",
                "oldString": "a",
                "newString": "b",
                "replaceAll": True,
                "filepath": "/workspace/a.py",
                "diff": "Index: /workspace/a.py\n=====\n--- /workspace/a.py\n+++ /workspace/a.py\n@@ -1 +1 @@\n-a\n+b\n",
                "filediff": {"file": "/workspace/a.py", "before": "a", "after": "b", "additions": 1, "deletions": 1},
            },
            "locations": [{"path": "/workspace/a.py"}],
        },
        {
            "kind": "edit",
            "rawInput": {
                "patchText": "*** Begin Patch\n*** Update File: src/a.py\n@@\n-a\n+b\n*** End Patch",
                "files": [
                    {"filePath": "/workspace/src/a.py", "relativePath": "src/a.py", "type": "update", "diff": "-a\n+b"}
                ],
            },
        },
        {"kind": "search", "rawInput": {"pattern": "x", "path": "/workspace/src", "include": "*.{ts,tsx}"}},
        # Gemini
        {
            "kind": "edit",
            "title": "a.py: a => b",
            "content": [{**_DIFF, "_meta": {"kind": "modify"}}],
            "locations": [{"path": "/workspace/a.py"}],
            "rawInput": {
                "file_path": "/workspace/a.py",
                "instruction": "Replace a",
                "old_string": "a",
                "new_string": "b",
                "expected_replacements": 1,
            },
        },
        {"kind": "search", "rawInput": {"pattern": "x", "dir_path": "src", "include": "*.py"}},
        {"kind": "read", "rawInput": {"absolute_path": "/workspace/a.py", "offset": 0, "limit": 10}},
        # The builtin agent
        {
            "kind": "edit",
            "title": "Edit a.py",
            "rawInput": {"path": "a.py", "old": "a", "new": "b", "every": False},
            "content": [_DIFF],
            "locations": [{"path": "/workspace/a.py"}],
        },
        {"kind": "edit", "rawInput": {"patch": "*** Begin Patch\n*** Add File: src/a.py\n+x\n*** End Patch"}},
        {"kind": "read", "rawInput": {"path": "src/a.py", "offset": 1, "limit": 1500}},
        {"kind": "search", "rawInput": {"pattern": "x", "path": "src", "files": "*.py"}},
        # What others add
        {"kind": "edit", "content": [_DIFF, _TEXT]},
        {"kind": "move", "rawInput": {"from": "/workspace/a", "to": "b"}},
        {"kind": "delete", "rawInput": {"paths": ["a", "/workspace/b"], "recursive": True}},
        {"kind": "edit", "rawInput": {"cwd": "/workspace", "file_path": "a.py", "content": "x"}},
    ],
    ids=range(22),
)
def test_a_rule_for_a_folder_covers_the_ordinary_calls_of_agents(call: Json) -> None:
    assert judge_in_folder(call) == "allow"


def test_a_relative_path_begins_at_the_folder_that_is_given_with_it() -> None:
    for key in ("cwd", "directory"):
        request = make_request({"kind": "edit", "rawInput": {key: "/workspace/repo/hooks", "file_path": "pre-commit"}})
        assert request.runs_by_itself
        denied = PermissionRule("deny", "edit", "/workspace/repo/hooks/pre-commit")
        assert judge(request, denied) == "deny"


def test_a_relative_path_begins_at_the_folder_of_the_session() -> None:
    """Also beside a relative folder, in a change and as a location. A rule for the workspace does not cover it."""
    hook = PermissionRule("deny", "edit", "/workspace/tree/.git/hooks/pre-commit")
    for call in (
        {"rawInput": {"file_path": ".git/hooks/pre-commit"}},
        {"rawInput": {"cwd": ".git", "file_path": "hooks/pre-commit"}},
        {"content": [{"type": "diff", "path": ".git/hooks/pre-commit", "newText": "x"}]},
        {"locations": [{"path": ".git/hooks/pre-commit"}]},
    ):
        request = make_request({"kind": "edit", **call}, folder="/workspace/tree")
        assert request.runs_by_itself
        assert judge(request, hook) == "deny"
        assert judge(request, PermissionRule("allow", "edit", "/workspace/*")) == "ask"


def test_a_command_of_a_session_with_a_folder_is_that_command_in_that_folder() -> None:
    everywhere, there = (PermissionRule("allow", "execute", text) for text in ("make", "cd /workspace/tree && make"))
    for raw in ({"command": "make"}, {"command": "make", "cwd": "."}, {"command": "make", "cwd": "/workspace/tree"}):
        request = make_request({"kind": "execute", "rawInput": raw}, folder="/workspace/tree")
        assert request.details["folder"] == "/workspace/tree"
        assert judge(request, everywhere) == "ask"
        assert judge(request, there) == "allow"
    elsewhere = make_request(
        {"kind": "execute", "rawInput": {"command": "make", "cwd": ".."}}, folder="/workspace/tree"
    )
    assert elsewhere.details["folder"] == "/workspace"
    assert judge(elsewhere, there) == "ask"
    changed, allowed = (read_input({"command": "make", "cwd": at}, "/workspace/tree") for at in ("..", "."))
    assert changed.differs_from(allowed)
    assert not read_input({"command": "make"}, "/workspace/tree").differs_from(allowed)


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ('+++ "b/\\303\\244\\t\\"x"', ['ä\t"x']),
        ("diff --git a/x y b/x y", ["x y"]),
        ("diff --git a/x b/z", ["x", "z"]),
        ('diff --git "a/\\056e" "b/\\056f"', [".e", ".f"]),
        ('diff --git "a/x" b/y', [None]),
        ('+++ "b/\\377"', [None]),
        ("rename from a/x\nrename to y", ["x", "y"]),
        ("*** Move to: a/x", ["a/x"]),
        ("+++ /dev/null\n+++ x\t2024", ["x"]),
        ("***\n---\n+++\nIndex", []),
    ],
)
def test_the_headers_of_a_patch_are_read_or_said_to_be_unreadable(text: str, paths: list[str | None]) -> None:
    assert list(find_patched_paths(text)) == paths


# Commands

GIT_STATUS = PermissionRule("allow", "execute", "git status*")


def test_a_rule_for_a_command_covers_no_other_field_and_no_file_that_runs_by_itself() -> None:
    plain = {"kind": "execute", "title": "git status", "rawInput": {"command": "git status"}}
    assert judge(make_request(plain), GIT_STATUS) == "allow"
    assert judge(make_request({**plain, **OK}), GIT_STATUS) == "allow"
    for added in ({"locations": [{"path": ".envrc"}]}, {"script": "evil"}, {"_meta": {"script": "evil"}}):
        assert judge(make_request({**plain, **added}), GIT_STATUS) == "ask", added
    assert judge(make_request(plain, {"script": "evil"}), GIT_STATUS) == "ask"


def test_no_command_can_be_written_so_that_it_means_what_another_key_adds() -> None:
    """What was allowed as a comment is not allowed as a script, an input or a variable."""
    added: list[Json] = [{"script": "rm"}, {"stdin": "rm"}, {"env": ["A=rm"]}, {"env": "A=rm"}]
    for more in added:
        subject = read_input({"command": "sh #", **more}).subject
        assert subject is not None
        assert read_input({"command": subject}).subject != subject
        assert subject not in {read_input({"command": f"sh # <<< {each}"}).subject for each in ("rm", "'rm'")}
    assert (
        read_input({"command": 'ls # {{"script": "rm"}}'}).subject
        != read_input({"command": "ls", "script": "rm"}).subject
    )


@pytest.mark.parametrize(
    "command",
    [
        "cp x .env''rc",
        'cp x .env""rc',
        "cp x .env\\rc",
        "cp x .env?c",
        "cp x .en[v]rc",
        "cp x .e*",
        "cp x ~/.ba's'hrc",
        "cp x ~/.ba?hrc",
        "cp x .g*/config",
        "cp x hooks/pre-*",
        "cp x repo/hook?/pre-commi[t]",
        "cp x '.git'/config",
        "cp x .venv/bin/python",
        "cp x ~/bin/ls",
        "cp " + " ".join(f"q{number}?z" for number in range(400)),
        "cp x " + "?" * 2_000,
    ],
)
def test_no_pattern_covers_a_command_whose_words_become_such_a_file(command: str) -> None:
    request = make_request({"kind": "execute", "rawInput": {"command": command}})
    assert request.runs_by_itself
    assert judge(request, PermissionRule("allow", "execute", "cp *")) == "ask"
    assert judge(request, PermissionRule("allow", "execute", command, exact=True)) == "allow"


@pytest.mark.parametrize(
    ("command", "pattern"),
    [
        ("grep -r 'foo.*bar' src", "grep *"),
        ('git commit -m "It\'s done"', "git commit*"),
        ("[ -f src/a.py ]", "[ *"),
        (".venv/bin/pytest tests", ".venv/bin/pytest*"),
        ("node_modules/.bin/eslint src", "node_modules/.bin/eslint*"),
        ("/usr/local/bin/uv sync", "/usr/local/bin/uv*"),
    ],
)
def test_a_pattern_still_covers_ordinary_commands(command: str, pattern: str) -> None:
    request = make_request({"kind": "execute", "rawInput": {"command": command}})
    assert judge(request, PermissionRule("allow", "execute", pattern)) == "allow"


def test_a_program_that_is_run_does_not_hide_that_it_is_written() -> None:
    request = make_request({"kind": "execute", "rawInput": {"command": ".venv/bin/cp x .venv/bin/cp"}})
    assert judge(request, PermissionRule("allow", "execute", ".venv/bin/cp*")) == "ask"


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        (PermissionRule("allow", "execute", "npm run * -- *"), "npm run " + " -- " * 250_000 + ";"),
        (PermissionRule("ask", "execute", "git * -- * -m *"), "git " + " -- " * 100_000 + " -m " * 100_000 + ";"),
        (PermissionRule("deny", "execute", "*rm *-rf*/"), "rm " * 100_000 + "-rf" * 100_000 + ";"),
    ],
    ids=["allow", "ask", "deny"],
)
def test_no_command_is_long_to_compare_with_a_rule(rule: PermissionRule, command: str) -> None:
    """Each took hours as a regular expression, with every other thread waiting."""
    assert decide([rule], "execute", (command,)) == "ask"


FREE = r"(?s:.*)"
IN_COMMAND = r"[^;&|<>$`\n\r(){}]*"
IN_PATH = r"[^\0\n]*"


@given(
    st.sampled_from([("deny", "execute", FREE), ("allow", "execute", IN_COMMAND), ("allow", "edit", IN_PATH)]),
    st.text("ab;*", max_size=8),
    st.text("ab;\n", max_size=12),
)
def test_a_pattern_matches_what_a_regular_expression_would(
    case: tuple[Effect, str, str], pattern: str, subject: str
) -> None:
    effect, kind, star = case
    expected = re.fullmatch(star.join(map(re.escape, pattern.split("*"))), subject) is not None
    assert PermissionRule(effect, kind, pattern).matches(kind, subject) == expected


@pytest.mark.parametrize(
    "patch",
    [
        'diff --git "' + '\\"' * 300_000,
        'diff --git "a" "' + '\\"' * 300_000,
        "diff --git " + "a " * 300_000 + "b",
        '+++ "' + '\\"' * 300_000,
        "diff --git " + '"' * 300_000,
    ],
    ids=["begun", "second", "words", "path", "quotes"],
)
def test_no_header_of_a_patch_is_long_to_read(patch: str) -> None:
    """A quote without an end took hours, with every other thread waiting."""
    assert list(find_patched_paths(patch)) == [None]


@pytest.mark.parametrize(
    ("written", "place", "shown"),
    [
        ("page/index.html", "/workspace/page/index.html", None),
        ("./page/index.html", "/workspace/page/index.html", None),
        ("/workspace/page/index.html", "/workspace/page/index.html", None),
        ("page/index.html", "/workspace/elsewhere", "/workspace/elsewhere"),
        ("page/../.envrc", "/workspace/.envrc", "/workspace/.envrc"),
        ("../agent/.bashrc", "/home/agent/.bashrc", "/home/agent/.bashrc"),
        ("/workspace/link", "/etc/passwd", "/etc/passwd"),
    ],
)
def test_the_owner_is_told_where_a_path_leads_only_when_that_is_not_what_it_says(
    written: str, place: str, shown: str | None
) -> None:
    asked = AskedCall("t1", {"kind": "edit", "title": "Edit", "locations": [{"path": written}]}, {}, folder=WORKSPACE)
    named = describe_paths(asked, [RealPath(place)])
    assert [one.marks.resolved for one in named.paths] == [shown]
