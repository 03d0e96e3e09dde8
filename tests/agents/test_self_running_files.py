"""Which files count as running by themselves, and that finding out is quick whatever an agent writes."""

import re
from collections.abc import Callable
from fnmatch import fnmatchcase

import pytest

from freehold.agents.sessions import self_running_files
from freehold.agents.sessions.self_running_files import describe_self_running, find_self_running_words
from freehold.agents.sessions.self_running_patterns import SELF_RUNNING

MARKED = """
.git .git/config .git/info/attributes .git/hooks/pre-commit .gitattributes .gitmodules .gitconfig bare/HEAD
info/attributes hooks/pre-push hooks/post-receive hooks/update .husky/pre-commit .githooks/x .pre-commit-config.yaml
.pre-commit-hooks.yaml lefthook.yml .lefthook.yaml lefthook-local.yml lefthook.toml .overcommit.yml
.simple-git-hooks.json .lintstagedrc.json .hg/hgrc .hgrc .jj/repo/config.toml .config/jj/config.toml
.bashrc .bash_profile .profile .zshrc .zshenv .kshrc .inputrc .xonshrc .config/fish/config.fish
.env .env.local .envrc .direnvrc .config/direnv/direnvrc mise.toml .mise.toml mise.local.toml .mise/config.toml
.config/mise/config.toml .tool-versions .asdfrc rust-toolchain.toml flake.nix shell.nix devbox.json
.venv/bin/python venv/bin/pytest node_modules/.bin/tsc node_modules/left-pad/index.js .cargo/bin/cargo
.venv/lib/python3.12/site-packages/pytest/__init__.py .pyenv/shims/python .npm/_npx/1/package.json
AGENTS.md AGENTS.override.md AGENT.md CLAUDE.md .goosehints .rules .mcp.json .claude/settings.json .codex/config.toml
.copilot/config.json .junie/guidelines.md .openhands/setup.sh .augment/rules/a.md .factory/a.json .amazonq/a.json
.github/instructions/a.md .github/agents/a.md .github/prompts/a.md .github/hooks/a.json .aider.conf.yml
.github/workflows/ci.yml .github/dependabot.yml .gitlab-ci.yml .circleci/config.yml .travis.yml Jenkinsfile .cirrus.yml
appveyor.yml .build.yml azure-pipelines.yml bitbucket-pipelines.yml cloudbuild.yaml buildspec.yml netlify.toml
vercel.json wrangler.toml Procfile renovate.json
package.json .pnpmfile.cjs pyproject.toml setup.cfg setup.py hatch_build.py Pipfile sitecustomize.py evil.pth build.rs
Cargo.toml composer.json binding.gyp Gemfile x.gemspec Podfile Package.swift mix.exs pom.xml build.gradle
build.gradle.kts settings.gradle gradle.properties gradle/wrapper/gradle-wrapper.jar gradle/wrapper/x.properties
.mvn/jvm.config .mvn/wrapper/maven-wrapper.properties buildSrc/src/main/java/A.java build.sbt app.csproj
Directory.Build.props Directory.Build.targets Makefile.PL
.npmrc .yarnrc .yarnrc.yml .yarn/releases/yarn.cjs bunfig.toml pip.conf .config/pip/pip.conf .pypirc uv.toml
.cargo/config.toml .cargo/config .cargo/env .gradle/init.d/a.gradle .gradle/init.gradle .m2/settings.xml nuget.config
Makefile makefile GNUmakefile rules.mk CMakeLists.txt x.cmake meson.build SConstruct build.xml build.zig justfile
Taskfile.yml Rakefile lib/tasks/x.rake Vagrantfile Guardfile magefile.go .goreleaser.yaml .golangci.yml
tox.ini noxfile.py dodo.py fabfile.py tasks.py conftest.py pytest.ini .coveragerc mypy.ini .pylintrc .flake8
.rspec .rubocop.yml phpunit.xml .user.ini .htaccess Dockerfile Dockerfile.prod dev.Dockerfile Containerfile
compose.yaml docker-compose.yml docker-compose.override.yml main.tf ansible.cfg cdk.json turbo.json nx.json tsconfig.json
vite.config.ts vite.config.mjs vitest.config.ts webpack.config.js webpack.prod.config.js rollup.config.mjs
eslint.config.js prettier.config.cjs jest.config.ts jest.config.json babel.config.js postcss.config.js
tailwind.config.ts next.config.mjs playwright.config.ts karma.conf.js gulpfile.js Gruntfile.js
.eslintrc .eslintrc.cjs .prettierrc .prettierrc.js .babelrc .babelrc.json .mocharc.js .swcrc .stylelintrc.json
.vscode/tasks.json x.code-workspace .idea/workspace.xml .devcontainer/devcontainer.json .devcontainer.json
devcontainer.json .gitpod.yml .gitpod.Dockerfile .replit .exrc .nvim.lua .vimrc .vim/plugin/a.vim .emacs.d/init.el
.dir-locals.el .zed/tasks.json .helix/languages.toml .config/zed/settings.json .config/Code/User/tasks.json
.config .local .config/systemd/user/a.service .local/share/systemd/user/a.service .config/autostart/a.desktop
.config/environment.d/a.conf .local/bin/ls .local/share/applications/a.desktop .ssh/config .ssh/authorized_keys
.gnupg/gpg-agent.conf .pam_environment .ipython/profile_default/startup/a.py .jupyter/jupyter_server_config.py
.docker/config.json .docker/cli-plugins/docker-x .aws/config .kube/config .config/gh/config.yml .pythonrc.py .pdbrc
.irbrc .Rprofile .psqlrc .gdbinit .tmux.conf .config/tmux/tmux.conf .config/anything/config .curlrc .wgetrc
"""
"""Found by name, extension or place: marked in any folder."""

MARKED_IN_PLACE = """
/etc/environment /etc/profile /etc/profile.d/a.sh /etc/bash.bashrc /etc/gitconfig /etc/rc.local /etc/crontab
/etc/cron.d/a /etc/cron.daily/a /etc/systemd/system/a.service /etc/init.d/a /etc/ld.so.preload /etc/sudoers.d/a
/etc/udev/rules.d/a.rules /usr/local/bin/ls /usr/local/lib/a.so /home/agent/bin/ls /home/agent/go/bin/x
/root/bin/ls /var/spool/cron/agent /usr/lib/systemd/system/a.service /lib/systemd/system/a.service
"""
"""Only at the root of the file system."""

PLAIN = """
src/main.py README.md bin/run scripts/deploy.sh docs/env.md src/.hidden home/a.py tests/test_a.py src/app.test.ts
src/config.ts src/config.js package.json.md gradlew mvnw configure requirements.txt manage.py index.html src/git.py
lib/a.py etc/notes.txt docs/Makefile-notes.md data.json go.mod uv.lock package-lock.json docs/hooks/intro.md HEADER
src/lib.rs app/models.py .editorconfig .gitignore .dockerignore LICENSE environment.py local/bin/x config/a.toml
"""
"""Runs only because the owner or another file names it, or not at all."""


@pytest.mark.parametrize("path", MARKED.split())
def test_what_a_program_finds_by_itself_is_marked(path: str) -> None:
    assert describe_self_running(f"/workspace/sub/{path}")
    assert describe_self_running(f"/home/agent/{path}")


@pytest.mark.parametrize("path", MARKED_IN_PLACE.split())
def test_what_the_system_starts_is_marked_only_in_its_place(path: str) -> None:
    assert describe_self_running(path)
    assert describe_self_running(f"/workspace{path}") is None


@pytest.mark.parametrize("path", PLAIN.split())
def test_what_runs_only_when_it_is_named_is_not_marked(path: str) -> None:
    assert describe_self_running(f"/workspace/{path}") is None


def test_every_pattern_of_the_list_marks_a_file() -> None:
    for what, patterns in SELF_RUNNING:
        for pattern in patterns:
            path = re.sub(r"^\*/", "a/", pattern).replace("/**", "/x/y").replace("~/", "/home/agent/").replace("*", "x")
            assert describe_self_running(f"/{path.lstrip('/')}"), (what, pattern)


@pytest.mark.parametrize(
    "command",
    [
        "cp x Makefile",
        "cp x makefile",
        "mv a sub/Dockerfile",
        "cp x Ma'kef'ile",
        "cp x Make?ile",
        "cp x M*",
        "cp x vite.conf[i]g.ts",
        "tee Jenkinsfile",
        "install -m 755 x node_modules/.bin/tsc",
        "/usr/bin/cp x .npmrc",
    ],
)
def test_a_command_that_names_such_a_file_is_marked(command: str) -> None:
    assert list(find_self_running_words(command))


@pytest.mark.parametrize(
    "command",
    [
        "make test",
        "npm run build",
        "git diff HEAD",
        "git log --oneline | head -5",
        ".venv/bin/pytest -q tests",
        "./gradlew test",
        "cargo build --release",
        "cp /workspace/a.py /workspace/b.py",
        "docker build -t x sub",
    ],
)
def test_an_ordinary_command_is_not_marked(command: str) -> None:
    assert not list(find_self_running_words(command))


def distinct(word: str, count: int) -> str:
    return " ".join(f"{word}{number}" for number in range(count))


@pytest.mark.parametrize(
    "look",
    [
        lambda: list(find_self_running_words(distinct("/bin/bin/bin/bin/w.", 1_000))),
        lambda: list(find_self_running_words(distinct("?q/" * 98, 200))),
        lambda: list(find_self_running_words(distinct("*q" * 140, 200))),
        lambda: [describe_self_running("/bin" * 1_000 + f"/makefile/{number}") for number in range(5)],
    ],
    ids=["words", "wildcards", "stars", "folders"],
)
def test_no_command_or_path_takes_long_to_look_at(look: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each name was compared with the whole list at each of its places: ten seconds for a command of 400 KB."""
    compared = 0

    def count(name: str, pattern: str) -> bool:
        nonlocal compared
        compared += 1
        return fnmatchcase(name, pattern)

    monkeypatch.setattr(self_running_files, "fnmatchcase", count)
    monkeypatch.setattr(self_running_files, "_overlaps", count)
    look()
    assert compared < 100_000
