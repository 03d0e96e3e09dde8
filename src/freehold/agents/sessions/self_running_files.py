"""Files that run by themselves: something else starts them, so whoever writes them runs a command later.

This is the one list. A file is in it when opening a folder, starting a shell or an agent, a commit, a push or an
installation runs it. A file that somebody must name to run it (a script, a Makefile) is not. No rule for a folder
covers such a file, and the page marks it.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase, translate
from functools import lru_cache
from posixpath import normpath

_WHAT: tuple[tuple[str, tuple[str, ...]], ...] = (
    # Git runs hooks, and commands that its configuration and attributes name. `.git` can also be a file.
    ("part of a Git repository, where hooks and settings run commands", (".git", ".git/**", ".gitconfig")),
    (
        "Git settings that can name commands",
        (".gitmodules", ".gitattributes", ".config/git/**", ".config/git", "etc/gitconfig"),
    ),
    (
        "settings of a version control system, which can name commands",
        (".hg", ".hg/**", ".hgrc", ".jj", ".jj/**", ".config/hg/**", ".config/jj/**"),
    ),
    (
        "a Git hook",
        (
            ".husky",
            ".husky/**",
            ".githooks",
            ".githooks/**",
            ".lefthook/**",
            "lefthook.y*ml",
            ".lefthook.y*ml",
            "lefthook-local.y*ml",
            ".pre-commit-config.y*ml",
            ".overcommit.yml",
            ".simple-git-hooks.json",
            ".lintstagedrc*",
            *(
                f"hooks/{name}"
                for name in (
                    "applypatch-msg",
                    "commit-msg",
                    "fsmonitor-watchman",
                    "post-*",
                    "pre-*",
                    "prepare-commit-msg",
                    "proc-receive",
                    "push-to-checkout",
                    "reference-transaction",
                    "sendemail-validate",
                    "update",
                )
            ),
        ),
    ),
    (
        "a shell profile",
        (
            ".bash*",
            ".profile",
            ".zsh*",
            ".zlog*",
            ".zprofile",
            ".kshrc",
            ".cshrc",
            ".tcshrc",
            ".login",
            ".logout",
            ".inputrc",
            ".config/fish",
            ".config/fish/**",
            ".oh-my-*/**",
            "etc/environment",
            "etc/profile",
            "etc/profile.d/**",
            "etc/bash*",
            "etc/zsh*",
        ),
    ),
    (
        "an environment that a shell or tool loads when it enters the folder",
        (
            ".env",
            ".envrc",
            ".direnvrc",
            ".direnv/**",
            ".config/direnv/**",
            "mise.toml",
            ".mise.toml",
            "mise.local.toml",
            ".mise.local.toml",
            ".mise",
            ".mise/**",
            ".config/mise/**",
            ".tool-versions",
            ".venv",
            ".venv/bin",
            ".venv/bin/**",
            "node_modules/.bin",
            "node_modules/.bin/**",
        ),
    ),
    (
        "settings of an agent",
        (
            "AGENTS.md",
            "AGENTS.override.md",
            "AGENT.md",
            ".goosehints",
            ".rules",
            "CLAUDE.md",
            "CLAUDE.local.md",
            "GEMINI.md",
            "QWEN.md",
            "CRUSH.md",
            ".cursorrules",
            ".windsurfrules",
            ".clinerules",
            ".mcp.json",
            "mcp.json",
            ".claude.json",
            "opencode.json*",
            ".opencode.json*",
            "crush.json",
            "fastagent.config.y*ml",
            ".aider.conf.y*ml",
            ".github/copilot-instructions.md",
            *(
                each
                for name in (
                    ".agents",
                    ".amp",
                    ".augment",
                    ".claude",
                    ".clinerules",
                    ".codex",
                    ".continue",
                    ".copilot",
                    ".crush",
                    ".cursor",
                    ".factory",
                    ".fast-agent",
                    ".freehold",
                    ".gemini",
                    ".goose",
                    ".junie",
                    ".kimi",
                    ".kiro",
                    ".opencode",
                    ".openhands",
                    ".pi",
                    ".qwen",
                    ".roo",
                    ".vibe",
                    ".windsurf",
                    ".config/amp",
                    ".config/claude",
                    ".config/crush",
                    ".config/goose",
                    ".config/opencode",
                    ".github/agents",
                    ".github/hooks",
                    ".github/instructions",
                    ".github/prompts",
                )
                for each in (name, f"{name}/**")
            ),
        ),
    ),
    (
        "a CI file",
        (
            ".github",
            ".github/workflows",
            ".github/workflows/**",
            ".github/actions",
            ".github/actions/**",
            ".gitea/workflows/**",
            ".forgejo/workflows/**",
            ".gitlab-ci.y*ml",
            ".gitlab/**",
            ".circleci",
            ".circleci/**",
            ".buildkite/**",
            ".travis.yml",
            ".drone.y*ml",
            ".woodpecker.y*ml",
            ".woodpecker/**",
            "azure-pipelines.y*ml",
            "bitbucket-pipelines.yml",
            "Jenkinsfile*",
            ".cirrus.y*ml",
            "appveyor.yml",
            ".appveyor.yml",
            ".build.yml",
            ".builds/**",
        ),
    ),
    (
        "a package description, whose scripts run when it is installed or built",
        (
            "package.json",
            ".npmrc",
            ".yarnrc*",
            ".yarn/**",
            ".pnpmfile.cjs",
            "pnpm-workspace.yaml",
            "bunfig.toml",
            "pyproject.toml",
            "setup.cfg",
            "setup.py",
            "conftest.py",
            "sitecustomize.py",
            "usercustomize.py",
            "*.pth",
            "build.rs",
            "Cargo.toml",
            ".cargo/config*",
            ".cargo/env",
            ".gradle/init.d/**",
            ".mvn",
            ".mvn/**",
            "composer.json",
            "binding.gyp",
        ),
    ),
    (
        "settings of an editor or development container",
        (
            ".vscode",
            ".vscode/**",
            "*.code-workspace",
            ".idea",
            ".idea/**",
            ".devcontainer",
            ".devcontainer/**",
            ".devcontainer.json",
            ".exrc",
            ".nvimrc",
            ".nvim.lua",
            ".vimrc",
            ".vim/**",
            ".config/nvim/**",
            ".emacs",
            ".emacs.d/**",
            ".dir-locals.el",
            ".zed",
            ".zed/**",
            ".helix",
            ".helix/**",
            ".config/zed/**",
            ".config/Code/**",
            ".config/helix/**",
            ".config/emacs/**",
        ),
    ),
    (
        "a program that the system starts or finds first",
        (
            ".config",
            ".local",
            ".ssh",
            ".ssh/**",
            ".config/systemd/**",
            ".config/autostart/**",
            ".config/environment.d/**",
            ".pam_environment",
            ".xprofile",
            ".xinitrc",
            ".xsession*",
            ".local/bin",
            ".local/bin/**",
            ".local/share/systemd/**",
            ".cargo/bin",
            ".cargo/bin/**",
            ".docker/cli-plugins/**",
            ".aws/config",
            ".kube/config",
            ".config/gh/**",
            ".ipython/*/startup/**",
            "~/bin/**",
            "home/*/bin/**",
            "root/bin/**",
            "usr/local/bin/**",
            "usr/local/sbin/**",
            "etc/systemd/**",
            "etc/cron*/**",
            "etc/crontab",
            "etc/ld.so.preload",
            "var/spool/cron/**",
            ".config/pip/**",
            ".pip/**",
            ".pythonrc*",
            ".gdbinit",
            ".lldbinit",
            ".tmux.conf",
            ".config/tmux/**",
            ".screenrc",
            ".curlrc",
            ".wgetrc",
        ),
    ),
)
_PATTERNS = tuple((tuple(pattern.casefold().split("/")), what) for what, patterns in _WHAT for pattern in patterns)
_LAST_NAMES = re.compile(
    "|".join({translate(pattern[-2] if pattern[-1] == "**" else pattern[-1]) for pattern, _ in _PATTERNS})
)
_ONLY_AT_ROOT = frozenset({"etc", "home", "root", "usr", "var"})
_WORD_END = re.compile(r"[\s`;&|<>(){}=,:]+")
_QUOTES = re.compile(r"['\"\\]")
_GLOB = re.compile(r"[?*\[]")
_ONE_OF = re.compile(r"\[[^/]+?\]")
_PROGRAM = re.compile(r"\s{0,9}[\w./~-]{0,300}\bs?bin/[\w.-]+(?=\s|$)")
"""The program that a command begins with, in a folder of programs: it is run there and not written."""

_MAX_GLOBS = 50
_MAX_GLOB = 300
_MAX_PATH = 4096
"""The longest path that Linux opens."""


def describe_self_running(path: str) -> str | None:
    """What starts the file or folder at this absolute path, in plain words. None when nothing is known to.

    Compared as file systems do that ignore case, look-alikes, invisible characters and dots at the end of a name.
    """
    if not any(map(_is_last_name, map(_fold, path.split("/")))):
        return None
    return _describe(path, fnmatchcase)


def find_self_running_words(command: str) -> Iterator[tuple[str, str]]:
    """The words of a shell command that name such a file, each with what starts it.

    A shell joins quoted parts to one word, and writes the names of files for `?`, `*` and `[`.
    """
    program = _PROGRAM.match(command)
    if program is not None:
        command = command[program.end() :]
    # A quote also parts words: those of a script inside the command.
    texts = (_QUOTES.sub("", command), _QUOTES.sub(" ", command))
    globs = 0
    for word in dict.fromkeys(word for text in texts for word in _WORD_END.split(text)):
        what = None
        if _GLOB.search(word):
            globs += 1
            is_small = globs <= _MAX_GLOBS and len(word) <= _MAX_GLOB
            what = (
                _describe(_ONE_OF.sub("?", word), _overlaps) if is_small else "a pattern that is too large to look at"
            )
        elif "." in word or "/" in word:
            what = describe_self_running(word[-_MAX_PATH:])
        if what is not None:
            yield word, what


def _describe(path: str, is_same: Callable[[str, str], bool]) -> str | None:
    names = tuple(_fold(name) for name in normpath(path).split("/") if name)
    return next((what for pattern, what in _PATTERNS if _matches(pattern, names, is_same)), None)


@lru_cache(maxsize=1024)
def _is_last_name(name: str) -> bool:
    """Whether some pattern can end here. Most names are in none, and that is quick to see."""
    return _LAST_NAMES.match(name) is not None


def _matches(pattern: tuple[str, ...], names: tuple[str, ...], is_same: Callable[[str, str], bool]) -> bool:
    folder = pattern[:-1] if pattern[-1] == "**" else pattern
    is_inside = len(folder) < len(pattern)
    if folder[0] in _ONLY_AT_ROOT:
        starts = range(1) if (len(names) > len(folder) if is_inside else len(names) == len(folder)) else range(0)
    elif is_inside:
        starts = range(len(names) - len(folder))
    else:
        starts = (
            range(len(names) - len(folder), len(names) - len(folder) + 1) if len(names) >= len(folder) else range(0)
        )
    return any(all(map(is_same, names[start : start + len(folder)], folder)) for start in starts)


def _overlaps(glob: str, pattern: str) -> bool:
    """Whether some name matches both."""
    # Which positions in the pattern are reached after each character of the glob.
    reached = _skip_stars({0}, pattern)
    for char in glob:
        if char == "*":
            reached = set(range(min(reached, default=len(pattern) + 1), len(pattern) + 1))
            continue
        following = {at + 1 for at in reached if at < len(pattern) and (char == "?" or pattern[at] in (char, "?"))}
        stay = {at for at in reached if at < len(pattern) and pattern[at] == "*"}
        reached = _skip_stars(following | stay, pattern)
        if not reached:
            return False
    return len(pattern) in reached


def _skip_stars(reached: set[int], pattern: str) -> set[int]:
    """A star in the pattern can also stand for nothing."""
    for at, char in enumerate(pattern):
        if char == "*" and at in reached:
            reached.add(at + 1)
    return reached


@lru_cache(maxsize=1024)
def _fold(name: str) -> str:
    plain = unicodedata.normalize("NFKC", name)
    plain = "".join(char for char in plain if unicodedata.category(char) not in ("Cf", "Mn"))
    folded = plain.casefold().rstrip(". ") or plain.casefold()
    return ".git" if folded == "git~1" else folded
