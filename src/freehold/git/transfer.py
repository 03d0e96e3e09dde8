"""Push and pull. With credentials in the vault for the host they go through a relay, else by the rules of the network."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from freehold.egress.vault import Vault
from freehold.errors import FreeholdError
from freehold.git.command import not_done
from freehold.git.ref_update import RefUpdate
from freehold.git.relay import GitRelay, Service, open_relay
from freehold.git.remote_address import parse_remote
from freehold.git.repository import Repository
from freehold.observe.secrets import Secret

TRANSFER_TIMEOUT = 300.0
_NO_PROXY = dict.fromkeys(("no_proxy", "NO_PROXY"), "127.0.0.1")


class GitTransfer:
    """To and from one remote, at the address that the owner saw."""

    def __init__(self, repository: Repository, vault: Vault, remote: str, url: str) -> None:
        self._repository = repository
        self._vault = vault
        self._remote = remote
        self._url = url

    async def push(self, commit: str, branch: str) -> None:
        """Sends that commit, whatever the branch is by now."""
        await self._check_address()
        async with self._open("git-receive-pack", RefUpdate(commit, branch)) as relay:
            await self._run(
                relay, "push", "--quiet", "--no-verify", self._address(relay), f"{commit}:refs/heads/{branch}"
            )
        git = self._repository.git
        await git.attempt("update-ref", f"refs/remotes/{self._remote}/{branch}", commit)
        await git.attempt("branch", f"--set-upstream-to={self._remote}/{branch}", branch)

    async def pull(self, branch: str) -> str:
        """Moves the branch forward to what the remote has. Returns the new commit. Raises `git.not-done` when both have changes."""
        await self._check_address()
        tracking = f"refs/remotes/{self._remote}/{branch}"
        async with self._open("git-upload-pack") as relay:
            await self._run(
                relay, "fetch", "--quiet", "--no-tags", "--no-recurse-submodules", self._address(relay),
                f"+refs/heads/{branch}:{tracking}",
            )  # fmt: skip
        merged = await self._repository.git.attempt("merge", "--ff-only", "--quiet", tracking, timeout=TRANSFER_TIMEOUT)
        if not merged.ok:
            raise FreeholdError(
                "git.not-done",
                f"{self._remote}/{branch} was fetched and not merged: {merged.words}",
                hint="Ask an agent to merge or rebase, or do it in a terminal",
            )
        return await self._repository.find_commit("HEAD")

    async def _check_address(self) -> None:
        """An agent may have changed it since the owner looked."""
        known = {one.name: one.url for one in await self._repository.read_remotes()}
        if known.get(self._remote) != self._url:
            raise FreeholdError(
                "git.changed", f"The address of {self._remote} is not {self._url} any more", hint="Look at it again"
            )

    @asynccontextmanager
    async def _open(self, service: Service, update: RefUpdate | None = None) -> AsyncIterator[GitRelay | None]:
        address = parse_remote(self._url)
        credentials = None if address is None else find_credentials(self._vault, address.secret)
        if address is None or credentials is None:
            yield None
            return
        async with open_relay(self._repository.computer, address, service, credentials, update) as relay:
            yield relay

    def _address(self, relay: GitRelay | None) -> str:
        return self._url if relay is None else relay.address

    async def _run(self, relay: GitRelay | None, *arguments: str) -> None:
        done = await self._repository.git.attempt(
            "-c", "credential.helper=", "-c", "http.followRedirects=false", *arguments,
            timeout=TRANSFER_TIMEOUT, environment=_NO_PROXY if relay is not None else None,
        )  # fmt: skip
        if done.ok:
            return
        if relay is not None and relay.problem is not None:
            raise relay.problem
        words = done.words if relay is None else done.words.replace(relay.address, self._url)
        raise not_done(words)


def find_credentials(vault: Vault, name: str) -> Secret | None:
    try:
        return vault.get(name)
    except FreeholdError as error:
        if error.code == "secret.not-found":
            return None
        raise
