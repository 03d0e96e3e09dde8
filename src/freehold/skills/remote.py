"""Skills of a git repository elsewhere: fetched through egress by git, which runs nothing of the repository."""

import asyncio
import os
import re
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from freehold.egress.host_proxy import serve_host_proxy
from freehold.errors import FreeholdError
from freehold.skills.sources import REF, FoundSkill, Refused, read_commit, require_some

if TYPE_CHECKING:
    from freehold.egress.service import EgressService

FETCH_TIMEOUT = 300.0
MAX_PACK = 512 * 1024 * 1024
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SAFE = (
    *("-c", "protocol.allow=never", "-c", "protocol.https.allow=always", "-c", "protocol.http.allow=always"),
    *("-c", "core.hooksPath=/dev/null", "-c", "fetch.fsckObjects=true", "-c", "http.followRedirects=false"),
    *("-c", "credential.helper=", "-c", "gc.auto=0"),
)


async def read_remote(
    egress: "EgressService", url: str, commit: str | None, refused: Refused | None = None, *, who: str
) -> list[FoundSkill]:
    """All skills of a commit, tag or branch; of the newest commit without one. The source names the commit.

    The host of the address is allowed for this alone, unless a rule denies it. Raises `skill.not-fetched`.
    """
    place, host = _read_address(url)
    wanted = commit or "HEAD"
    if _COMMIT.fullmatch(wanted) is None and REF.fullmatch(wanted) is None:
        raise FreeholdError("skill.bad-choice", f"{wanted[:100]!a} is not the name of a commit, tag or branch")
    if place.startswith("http://") and _COMMIT.fullmatch(wanted) is None:
        raise FreeholdError(
            "skill.bad-choice",
            "An address with http can be changed on the way",
            hint="Use https, or name the full hash of a commit with --commit",
        )
    session = f"skills-{os.urandom(6).hex()}"
    await egress.allow_session(session, host, "conversation", who=who)
    try:
        with tempfile.TemporaryDirectory(prefix="freehold-skill-") as folder:
            async with serve_host_proxy(egress, session) as proxy:
                await _fetch(folder, place, wanted, proxy)
            found = await asyncio.to_thread(
                lambda: list(read_commit(Path(folder), "FETCH_HEAD", "remote", place, refused, asked=wanted))
            )
            return require_some(found, refused, place)
    finally:
        egress.end_conversation(session)


def _read_address(url: str) -> tuple[str, str]:
    """The address without what does not belong there, and its host with its port."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        parts, port = urlsplit(""), 0
    if parts.scheme not in ("https", "http") or not parts.hostname or not url.isprintable() or len(url) > 2000:
        raise FreeholdError("skill.bad-choice", f"{url[:200]!a} is not the address of a repository")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise FreeholdError("skill.bad-choice", "The address of a repository has no user name, password, ? or #")
    return url, f"{parts.hostname}:{port}"


async def _fetch(folder: str, place: str, wanted: str, proxy: str) -> None:
    await _git(folder, {}, "init", "--quiet", "--bare", ".")
    around = {"https_proxy": proxy, "http_proxy": proxy, "GIT_HTTP_PROXY_AUTHMETHOD": "basic"}
    fetch = ("fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-commit-graph", "--depth=1")
    await _git(folder, around, *fetch, "--end-of-options", place, wanted)


async def _git(folder: str, around: dict[str, str], *words: str) -> None:
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": folder,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C.UTF-8",
        **{name: os.environ[name] for name in ("SSL_CERT_FILE", "GIT_SSL_CAINFO") if name in os.environ},
        **around,
    }
    process = await asyncio.create_subprocess_exec(
        *("/bin/sh", "-c", f'ulimit -f {MAX_PACK // 512} && exec "$@"', "sh", "git", *_SAFE, *words),
        cwd=folder,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(FETCH_TIMEOUT):
            _, said = await process.communicate()
    except TimeoutError:
        raise FreeholdError("skill.not-fetched", f"The repository was not there within {FETCH_TIMEOUT:g} s") from None
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode:
        words_said = said.decode(errors="replace").strip()[-600:]
        raise FreeholdError(
            "skill.not-fetched",
            f"The repository cannot be fetched: {words_said}",
            hint="If its host is denied, freehold egress shows the rule",
        )
