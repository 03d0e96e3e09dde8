"""Files that run by themselves: something else starts them, so whoever writes them runs a command later.

This is the one list. A file is in it when opening a folder, starting a shell or an agent, a commit, a push or an
installation runs it. A file that somebody must name to run it (a script, a Makefile) is not. No rule for a folder
covers such a file, and the page marks it.
"""

import re
import unicodedata
from collections.abc import Iterator
from fnmatch import fnmatchcase
from posixpath import normpath

_WHAT: tuple[tuple[str, tuple[str, ...]], ...] = (
    # Git runs hooks, and commands that its configuration and attributes name. `.git` can also be a file.
    ("part of a Git repository, where hooks and settings run commands", (".git", ".git/**", ".gitconfig")),
    ("Git settings that can name commands", (".gitmodules", ".gitattributes", ".config/git/**", ".config/git")),
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
            "etc/profile",
            "etc/profile.d/**",
            "etc/bash*",
            "etc/zsh*",
        ),
    ),
    (
        "an environment that a shell or tool loads when it enters the folder",
        (".envrc", "mise.toml", ".mise.toml", ".config/mise/**", ".tool-versions", ".direnv/**"),
    ),
    (
        "settings of an agent",
        (
            "AGENTS.md",
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
                    ".claude",
                    ".clinerules",
                    ".codex",
                    ".continue",
                    ".crush",
                    ".cursor",
                    ".fast-agent",
                    ".freehold",
                    ".gemini",
                    ".goose",
                    ".kimi",
                    ".kiro",
                    ".opencode",
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
            "setup.py",
            "sitecustomize.py",
            "usercustomize.py",
            "*.pth",
            "build.rs",
            ".cargo/config*",
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
            ".zed/**",
        ),
    ),
    (
        "a program that the system starts or finds first",
        (
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
_ONLY_AT_ROOT = frozenset({"etc", "var"})
_WORD_END = re.compile(r"[\s'\"`;&|<>(){}=,:]+")


def describe_self_running(path: str) -> str | None:
    """What starts the file or folder at this absolute path, in plain words. None when nothing is known to.

    Compared as file systems do that ignore case, look-alikes, invisible characters and dots at the end of a name.
    """
    names = tuple(_fold(name) for name in normpath(path).split("/") if name)
    for pattern, what in _PATTERNS:
        if _matches(pattern, names):
            return what
    return None


def find_self_running_words(command: str) -> Iterator[tuple[str, str]]:
    """The words of a shell command that name such a file, each with what starts it."""
    for word in dict.fromkeys(_WORD_END.split(command.replace("\\", ""))):
        what = describe_self_running(word) if "." in word or "/" in word else None
        if what is not None:
            yield word, what


def _matches(pattern: tuple[str, ...], names: tuple[str, ...]) -> bool:
    if pattern[-1] != "**":
        if pattern[0] in _ONLY_AT_ROOT:
            return len(names) == len(pattern) and _same(names, pattern)
        return len(names) >= len(pattern) and _same(names[-len(pattern) :], pattern)
    folder = pattern[:-1]
    if folder[0] in _ONLY_AT_ROOT:
        return len(names) > len(folder) and _same(names[: len(folder)], folder)
    starts = range(len(names) - len(folder))
    return any(_same(names[start : start + len(folder)], folder) for start in starts)


def _same(names: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    return all(fnmatchcase(name, each) for name, each in zip(names, pattern, strict=True))


def _fold(name: str) -> str:
    plain = unicodedata.normalize("NFKC", name)
    plain = "".join(char for char in plain if unicodedata.category(char) not in ("Cf", "Mn"))
    folded = plain.casefold().rstrip(". ") or plain.casefold()
    return ".git" if folded == "git~1" else folded
