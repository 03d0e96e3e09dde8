"""The commands on the pages of the documentation run as they stand there, in a shell, against a Freehold that runs.

What needs another machine, a terminal or a service that is not here is run by the test that `RUN_ELSEWHERE` names. A
command that is new on a page runs here.
"""

import ast
import asyncio
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import click
import pytest
from tests.skills.skill_folders import skill_text, write_skill, write_zip
from tests.support.condition import until
from tests.support.freehold import PROCESS_TIMEOUT, ROOT
from tests.support.running_freehold import FreeholdOptions, RunningFreehold

from freehold.cli.main import freehold_command

pytestmark = pytest.mark.shared_processes

DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```(sh|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"\s+#.*$")
USES_FREEHOLD = re.compile(r"(^|[|&;(] *)freehold ")
ADD_WASM = bytes.fromhex("0061736d0100000001070160027f7f017f03020100070701036164640000" + "0a09010700200020016a0b")
MANIFEST = """
[slots]
orchestrator = "local"

[mcp.notes]
command = "python3 /workspace/notes_mcp.py"

[routines.morning]
cron = "0 7 * * MON-FRI"
command = "true"

[models.openai]
kind = "openai"
base_url = "{model_url}"
key = "secret:scripted"
"""
FREEHOLD = FreeholdOptions(("builtin",), manifest=MANIFEST)
REPLACED = {
    "claude": "builtin",  # the agent that is installed here
    "seq 1000": "seq 3",
    "https://llm.example.org": "{model_url}",
    "notes search": "notes echo",  # the server of the test has this one
    "create backup --scope read --scope files": "create nightly --scope read --scope files",  # another page has it
    "-a codex": "-a builtin",
    "diff 12": "diff 1",
}
RUN_ELSEWHERE: dict[str, tuple[str, ...]] = {
    "freehold acp": ("tests/editors/test_acp.py::test_an_editor_has_a_sealed_agent_its_approvals_and_undo",),
    "freehold acp --to": ("tests/editors/test_acp.py::test_an_editor_has_the_agents_of_a_freehold_elsewhere",),
    "freehold agents add": (
        "tests/agents/test_installation.py::test_the_first_agent_is_added_to_a_freehold_that_has_never_run_and_to_no_other",
    ),
    "freehold agents remove": ("tests/agents/test_installation.py::test_an_agent_is_removed_by_its_command",),
    "freehold agents registry": (
        "tests/agents/test_acp_registry.py::test_the_command_asks_the_running_freehold_for_an_index_at_an_address",
    ),
    "freehold backup": ("tests/backup/test_commands.py::test_from_the_set_up_to_a_restored_home",),
    "freehold backup now --take-over": (
        "tests/backup/test_commands.py::test_backups_go_on_from_an_older_one_that_was_restored",
    ),
    "freehold restore-from": ("tests/backup/test_commands.py::test_from_the_set_up_to_a_restored_home",),
    "freehold export": ("tests/backup/test_commands.py::test_the_whole_goes_into_one_file_and_back",),
    "freehold import": ("tests/backup/test_commands.py::test_the_whole_goes_into_one_file_and_back",),
    "freehold build": (
        "tests/images/test_build_command.py::test_the_first_build_writes_a_lock_and_the_next_gives_the_same_bytes",
    ),
    "freehold build --brain": (
        "tests/images/test_build_command.py::test_the_image_of_freehold_itself_has_its_own_lock_and_shares_the_pool",
    ),
    "freehold channels": (
        "tests/channels/test_freehold.py::test_the_owner_talks_to_a_session_from_a_nostr_client_also_after_kill_nine",
        "tests/channels/test_freehold.py::test_the_command_line_lists_tries_and_removes",
    ),
    "freehold chat --session": ("tests/cli/test_chat.py::test_a_session_is_continued_and_no_token_is_left",),
    "freehold chat --to": ("tests/cli/test_chat.py::test_a_remote_freehold_is_used_with_the_token_of_a_login",),
    "freehold chat -p --json": ("tests/cli/test_chat.py::test_a_script_gets_json_and_an_exit_code",),
    "freehold deploy compose": ("tests/deploy/test_compose.py::test_a_check_tells_when_the_files_have_drifted",),
    "freehold deploy quadlet": (
        "tests/deploy/test_compose.py::test_a_check_tells_of_files_that_podman_joins_with_ours",
    ),
    "freehold deploy caddy": ("tests/deploy/test_compose.py::test_caddy_accepts_its_file",),
    "freehold deploy env": ("tests/deploy/test_compose.py::test_the_caddyfile_and_the_variables",),
    "freehold deploy kubernetes": ("tests/deploy/test_kubernetes.py::test_a_check_tells_when_the_files_have_drifted",),
    "freehold deploy kubernetes cluster --try": (
        "tests/deploy/test_kubernetes.py::test_a_missing_namespace_and_a_silent_cluster_have_their_own_words",
    ),
    "freehold deploy systemd": ("tests/deploy/test_systemd.py::test_systemd_accepts_the_unit",),
    "freehold doctor": ("tests/cli/test_doctor.py::test_each_attempt_is_printed_as_it_ends",),
    "freehold doctor --backend": (
        "tests/cli/test_doctor.py::test_the_backend_that_is_named_is_tried_with_the_engine_of_the_environment",
    ),
    "freehold doctor --public": ("tests/cli/test_doctor.py::test_a_deployed_freehold_is_looked_at_from_outside",),
    "freehold down": ("tests/cli/test_down.py::test_down_now_ends_everything_and_the_timeline_verifies",),
    "freehold up": ("tests/cli/test_up.py::test_in_the_foreground_it_prints_a_summary_and_ctrl_c_stops_it",),
    "freehold up -d": ("tests/cli/test_up.py::test_in_the_background_it_returns_when_ready_and_down_stops_it",),
    "freehold egress answer": (
        "tests/cli/test_egress.py::test_an_answer_becomes_a_rule",
        "tests/cli/test_egress.py::test_all_requests_can_be_denied_at_once_but_not_allowed",
    ),
    "freehold fleet join": ("tests/support/fleet.py::join",),
    "freehold init": ("tests/cli/test_init.py::test_a_handle_is_resolved_once_and_written_as_a_did",),
    "freehold login": ("tests/client/test_login.py::test_the_owner_allows_a_login_in_the_browser",),
    "freehold mesh": (
        "tests/mesh/test_cli.py::test_pairing_shows_the_key_before_it_is_done",
        "tests/mesh/test_cli.py::test_work_and_messages_go_to_a_neighbour_and_are_listed",
    ),
    "freehold revert 812": ("tests/cli/test_history_verbs.py::test_revert_shows_conflicts_and_waits_for_a_choice",),
    "freehold models add anthropic": ("tests/cli/test_models.py::test_the_providers_of_the_guides_are_connected",),
    "freehold models add claude-code": ("tests/cli/test_models.py::test_the_providers_of_the_guides_are_connected",),
    "freehold models add custom --name studio": (
        "tests/cli/test_models.py::test_the_providers_of_the_guides_are_connected",
    ),
    "freehold models add ollama": ("tests/cli/test_models.py::test_the_providers_of_the_guides_are_connected",),
    "freehold models default ollama": ("tests/cli/test_models.py::test_the_providers_of_the_guides_are_connected",),
    "freehold models remove groq": ("tests/cli/test_models.py::test_a_provider_is_connected_chosen_and_disconnected",),
    "freehold models add codex": ("tests/cli/test_models.py::test_the_sign_in_of_codex_is_read_from_its_file",),
    "pass show groq": ("tests/cli/test_models.py::test_a_provider_is_connected_chosen_and_disconnected",),
    'freehold map --prompt "Which': (
        "tests/cli/test_map_prompts.py::test_a_prompt_over_200_files_after_kill_9_of_everything",
    ),
    "freehold run --input data.csv --output": (
        "tests/cli/test_run.py::test_files_go_to_the_code_and_those_that_were_named_come_back",
    ),
    "freehold run pytest": ("tests/cli/test_run.py::test_output_and_exit_code_are_those_of_the_command",),
    "freehold skills add https": (
        "tests/skills/test_remote_commands.py::"
        "test_one_of_several_must_be_named_and_all_of_an_older_commit_can_be_added",
    ),
    "freehold skills add npm": (
        "tests/skills/test_registry_package.py::test_a_skill_of_a_package_is_added_and_updated_by_the_command",
    ),
    "freehold ssh": ("tests/ssh/test_keeper.py::test_freehold_ssh_runs_a_command_and_returns_its_exit_code",),
    "freehold ssh --install": ("tests/ssh/test_keeper.py::test_install_adds_one_line_once",),
    "freehold ssh --to": ("tests/ssh/test_keeper.py::test_a_remote_freehold_is_reached_with_a_token",),
    "freehold timeline -f": ("tests/cli/test_timeline.py::test_following_prints_stored_events_and_then_new_ones",),
    "freehold timeline --kind 'egress.*' -f": (
        "tests/cli/test_timeline.py::test_options_select_events",
        "tests/cli/test_timeline.py::test_following_prints_stored_events_and_then_new_ones",
    ),
    "freehold timeline verify --head": (
        "tests/cli/test_timeline.py::test_verify_finds_nothing_in_an_intact_timeline_and_prints_its_head",
    ),
    "freehold uninstall": ("tests/cli/test_uninstall.py::test_the_data_is_kept_and_the_rest_is_named_and_removed",),
    "freehold upgrade": ("tests/upgrade/test_upgrade.py::test_an_upgrade_of_a_running_home_comes_back_running",),
}
"""By the beginning of a line: the tests of what it does, with what it needs. The longest beginning counts."""
CALLED_ELSEWHERE = {
    "freehold fleet": "tests/fleet/test_fleet.py",
    "freehold ssh -L": "tests/ssh/test_forwards.py",
}
"""What no test types: the tests in these files call what the command calls."""
STANDS_FOR_ANOTHER = {"812", "pytest", "npm", "egress.*"}
"""Words of a line that are another one in its test."""
PAGES_ELSEWHERE = {"guides/slots.md": "tests/cli/test_slots_guide.py", "guides/host-tools.md": "tests/agents/tools"}


def lines_of(page: Path) -> list[str]:
    """The lines of a page that use Freehold, without their comments."""
    found = []
    for kind, block in BLOCK.findall(page.read_text()):
        for line in block.replace("\\\n", " ").splitlines():
            if kind == "console" and not line.startswith("$ "):
                continue  # what the command prints
            command = COMMENT.sub("", line.removeprefix("$ ")).strip()
            if USES_FREEHOLD.search(command):
                found.append(command)
    return found


def is_run_elsewhere(line: str) -> bool:
    return any(line.startswith(beginning) for beginning in (*RUN_ELSEWHERE, *CALLED_ELSEWHERE))


def find_beginning(line: str) -> str | None:
    """The longest that this line has. None for one that only `CALLED_ELSEWHERE` has."""
    return max((each for each in RUN_ELSEWHERE if line.startswith(each)), key=len, default=None)


def telling_words(line: str, beginning: str) -> set[str]:
    """The command of a line with those that it is in, and all words by which its tests were found."""
    found = set(beginning.replace('"', "").replace("'", "").split())
    command: click.Command | None = freehold_command
    for word in line[line.index("freehold ") :].split()[1:]:
        command = command.get_command(click.Context(command), word) if isinstance(command, click.Group) else None
        if command is None:
            break
        found.add(word)
    return found - {"freehold", "pass", "show", "Which", "cluster"} - STANDS_FOR_ANOTHER


@cache
def read_test(name: str) -> str:
    """A test as it is written, with everything in its file that is no test: what it calls may type the command."""
    file, _, function = name.partition("::")
    text = (ROOT / file).read_text()
    lines, tests = text.splitlines(), {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith(("test_", function)):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            tests[node.name] = range(first - 1, node.end_lineno or node.lineno)
    assert function in tests, f"{file} has no {function}"
    others = {number for name, numbers in tests.items() if name != function for number in numbers}
    return "\n".join(line for number, line in enumerate(lines) if number not in others)


PAGES = {
    page: lines
    for path in sorted(DOCS.rglob("*.md"))
    if (page := str(path.relative_to(DOCS))).partition("/")[0] not in ("adr", "reviews", "cli.md")
    and (lines := lines_of(path))
}


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which a reader types, with the files that the pages speak of. It is the reader's home as well."""
    folder = tmp_path_factory.mktemp("reader")
    for path, text in {
        "notes/monday.md": "one two\n",
        "photos/leaf.jpg": "a picture",
        "contracts/rent.txt": "a contract",
        "count.py": "import sys\nprint(len(open(sys.argv[1]).read().split()))\n",
        "resize.sh": '#!/bin/sh\ncp "$1" small.jpg\n',
        "evaluate.py": "import sys\nprint(sys.argv[1])\n",
        "report.py": "import sys\nprint(sys.argv[1:])\n",
    }.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text)
    (folder / "add.wasm").write_bytes(ADD_WASM)
    write_skill(folder / "skills" / "charts")
    files = {f"{name}/SKILL.md": skill_text(name).encode() for name in ("maps", "letters")}
    write_zip(folder / "skills.zip", files)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


@pytest.fixture(scope="module")
def workspace(freehold: RunningFreehold) -> None:
    """What the pages speak of inside of the computer."""
    freehold.file("notes_mcp.py").write_bytes((ROOT / "tests/mcp/odd_server.py").read_bytes())
    freehold.file("flows").mkdir()
    freehold.file("flows/nightly.py").write_bytes((ROOT / "examples/workflows/nightly_update.py").read_bytes())


async def run_line(line: str, freehold: RunningFreehold, reader: Path) -> tuple[int, str]:
    for written, meant in REPLACED.items():
        line = line.replace(written, meant)
    line = line.replace("{model_url}", freehold.model.url)
    environment = freehold.harness.environment | {
        "HOME": str(reader),
        "SHELL": "/bin/bash",
        "last_seen": "1",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    shell = await asyncio.create_subprocess_exec(
        "bash",
        "-o",
        "pipefail",
        "-c",
        line,
        cwd=reader,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    async with asyncio.timeout(PROCESS_TIMEOUT):
        printed, _ = await shell.communicate(b"y\n")
    assert shell.returncode is not None
    return shell.returncode, printed.decode()


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("page", [page for page in PAGES if page not in PAGES_ELSEWHERE])
async def test_the_commands_of_a_page_work_in_their_order(
    page: str, freehold: RunningFreehold, workspace: None, reader: Path
) -> None:
    await until(freehold.is_connected)
    freehold.file("notes.md").write_text(f"before the commands of {page}")
    await asyncio.to_thread(freehold.harness.run, "log", check=True)  # what was written can be undone now
    for line in PAGES[page]:
        if not is_run_elsewhere(line):
            code, printed = await run_line(line, freehold, reader)
            assert code == 0, f"{line}\n{printed}"


def test_every_command_that_is_not_run_here_has_a_test() -> None:
    lines = [line for page, lines in PAGES.items() if page not in PAGES_ELSEWHERE for line in lines]
    for beginning in (*RUN_ELSEWHERE, *CALLED_ELSEWHERE):
        assert any(line.startswith(beginning) for line in lines), f"no page has {beginning}"
    assert all((ROOT / test).exists() for test in (*PAGES_ELSEWHERE.values(), *CALLED_ELSEWHERE.values()))
    assert sum(not is_run_elsewhere(line) for line in lines) > 70


def test_the_test_of_a_command_types_it() -> None:
    """Its words, and those of each group that it is in, are in a test that exists, or in what that test calls."""
    missing = []
    for line in sorted({line for page, lines in PAGES.items() if page not in PAGES_ELSEWHERE for line in lines}):
        if (beginning := find_beginning(line)) is not None:
            source = "\n".join(read_test(test) for test in RUN_ELSEWHERE[beginning])
            words = telling_words(line, beginning)
            missing += [
                f"{line}: {word}" for word in words if not re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", source)
            ]
    assert missing == []
