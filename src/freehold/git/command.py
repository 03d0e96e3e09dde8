"""Runs git inside the computer. A repository is written by agents: its configuration and hooks never run on the host."""

from collections.abc import Mapping
from dataclasses import dataclass

from freehold.agents.visible_text import make_visible
from freehold.computer import Computer
from freehold.computer.contract.conventions import WORKSPACE
from freehold.errors import FreeholdError
from freehold.observe.secrets import mask_secrets

READ_TIMEOUT = 30.0
WRITE_TIMEOUT = 120.0
"""Seconds. A commit may run the hooks of the repository."""
GROUP = "git"
"""Commands of agents cannot inspect those of this group. The kill switch ends what they leave behind."""
MAX_WORDS = 600
_OPTIONS = (
    "-c", "core.quotePath=false", "-c", "color.ui=false", "-c", "core.fsmonitor=false", "-c", "core.pager=cat",
    "-c", "advice.detachedHead=false", "--literal-pathspecs",
)  # fmt: skip
_ENVIRONMENT: Mapping[str, str | None] = {
    "LC_ALL": "C.UTF-8",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
    "GIT_ASKPASS": "true",
    "GIT_DIR": None,
    "GIT_WORK_TREE": None,
}


@dataclass(frozen=True)
class GitOutput:
    """What a command printed. `is_cut`: it printed more."""

    ok: bool
    data: bytes
    words: str
    is_cut: bool


class GitFolder:
    """A folder of the workspace in which git commands are run."""

    def __init__(self, computer: Computer, folder: str) -> None:
        self._computer = computer
        self.path = f"{WORKSPACE}/{folder}".rstrip("/") if folder not in ("", ".") else WORKSPACE

    async def run(self, *arguments: str, stdin: bytes | None = None, timeout: float = WRITE_TIMEOUT) -> bytes:
        """The output. Raises `git.not-done` with git's own words."""
        found = await self.attempt(*arguments, stdin=stdin, timeout=timeout)
        if not found.ok:
            raise not_done(found.words)
        return found.data

    async def attempt(
        self,
        *arguments: str,
        stdin: bytes | None = None,
        timeout: float = READ_TIMEOUT,
        environment: Mapping[str, str | None] | None = None,
    ) -> GitOutput:
        """The output of a command that may fail."""
        result = await self._computer.run(
            ["/usr/bin/git", *_OPTIONS, *arguments],
            cwd=self.path,
            env={**_ENVIRONMENT, **(environment or {})},
            stdin=stdin,
            timeout=timeout,
            apart=GROUP,
        )
        if result.limit == "wall_time":
            raise FreeholdError("git.slow", f"git took longer than {timeout:g} s and was ended")
        words = read_words(result.stderr) or read_words(result.stdout)
        return GitOutput(result.ok, result.stdout, words, result.truncated > 0)


def read_words(output: bytes) -> str:
    """The last lines of what git said, as visible text without secrets."""
    text = output[-4 * MAX_WORDS :].decode(errors="replace")
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("hint:")]
    return make_visible(mask_secrets("\n".join(lines)[-MAX_WORDS:]))


def not_done(words: str) -> FreeholdError:
    return FreeholdError("git.not-done", f"git did not do it: {words}" if words else "git did not do it")
