"""A repository on an SFTP server. The server's key must be in ~/.ssh/known_hosts of the user who runs Freehold."""

import asyncio
import contextlib
import secrets
import threading
from collections.abc import Coroutine, Iterator, Mapping
from dataclasses import dataclass
from posixpath import dirname
from typing import Any, TypeVar

import asyncssh

from freehold.backup.stores.contract import (
    MAX_OBJECT,
    ObjectExists,
    ObjectMissing,
    StoredObject,
    check_object_name,
    is_object_name,
    store_full,
    store_refused,
    store_unreachable,
)
from freehold.errors import FreeholdError

Result = TypeVar("Result")
CALL_TIMEOUT = 300.0
_DRAFT = ".draft-"
_OLD_DRAFT = 86_400.0


@dataclass(frozen=True)
class SftpPlace:
    """`password` None: the keys of the user, and the agent. `known_hosts` None: the file of the user."""

    host: str
    port: int
    user: str | None
    folder: str
    password: str | None = None
    known_hosts: str | None = None
    key_files: tuple[str, ...] = ()


class SftpStore:
    """One connection, made at the first call and again after it broke. Its event loop is in a thread of its own."""

    def __init__(self, place: SftpPlace) -> None:
        self.where = f"sftp://{place.host}:{place.port}{place.folder}"
        self._place = place
        self._root = place.folder.rstrip("/")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="backup-sftp", daemon=True)
        self._thread.start()
        self._connection: asyncssh.SSHClientConnection | None = None
        self._client: asyncssh.SFTPClient | None = None
        self._connecting = asyncio.Lock()
        self._folders: set[str] = set()

    def put(self, name: str, data: bytes) -> None:
        self._run(self._write(self._path(name), data, replace=True))

    def create(self, name: str, data: bytes) -> None:
        self._run(self._write(self._path(name), data, replace=False))

    def get(self, name: str) -> bytes:
        return self._run(self._read(self._path(name)))

    def list_objects(self, folder: str) -> Iterator[StoredObject]:
        yield from self._run(self._list(folder.rstrip("/")))

    def delete(self, name: str) -> None:
        self._run(self._delete(self._path(name)))

    def read_clock(self) -> float:
        return self._run(self._read_clock())

    def close(self) -> None:
        if self._thread.is_alive():
            with contextlib.suppress(FreeholdError):
                self._run(self._disconnect())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(10)
            self._loop.close()

    def _path(self, name: str) -> str:
        return f"{self._root}/{check_object_name(name)}"

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """The result of a coroutine in the thread of the connection. Errors become those of every store."""
        future = asyncio.run_coroutine_threadsafe(asyncio.wait_for(work, CALL_TIMEOUT), self._loop)
        try:
            return future.result()
        except asyncssh.SFTPNoSuchFile as error:
            raise ObjectMissing(str(error)) from None
        except asyncssh.PermissionDenied as error:
            raise store_refused(self.where, error) from error
        except asyncssh.HostKeyNotVerifiable as error:
            raise store_refused(
                self.where, f"its key is not known here. Run once: ssh {self._place.host} ({error})"
            ) from error
        except asyncssh.SFTPError as error:
            if error.code in (asyncssh.FX_NO_SPACE_ON_FILESYSTEM, asyncssh.FX_QUOTA_EXCEEDED) or "space" in str(error):
                raise store_full(self.where, error) from error
            raise store_refused(self.where, error) from error
        except (asyncssh.Error, OSError, TimeoutError) as error:
            self._client = None
            raise store_unreachable(self.where, str(error) or type(error).__name__) from error

    async def _connected(self) -> asyncssh.SFTPClient:
        async with self._connecting:
            if self._client is None or self._connection is None or self._connection.is_closed():
                place = self._place
                options: dict[str, Any] = {"known_hosts": place.known_hosts} if place.known_hosts else {}
                if place.key_files:
                    options["client_keys"] = list(place.key_files)
                self._connection = await asyncssh.connect(
                    place.host,
                    place.port,
                    username=place.user or (),
                    password=place.password,
                    connect_timeout=15,
                    keepalive_interval=30,
                    **options,
                )
                self._client = await self._connection.start_sftp_client()
                self._folders.clear()
            return self._client

    async def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            await self._connection.wait_closed()

    async def _write(self, path: str, data: bytes, *, replace: bool) -> None:
        client = await self._connected()
        folder = dirname(path)
        if folder not in self._folders:
            await client.makedirs(folder, exist_ok=True)
            self._folders.add(folder)
        draft = f"{folder}/{_DRAFT}{secrets.token_hex(8)}"
        try:
            async with client.open(draft, "xb") as file:
                await file.write(data)
                await self._sync(file)
            if replace:
                await client.posix_rename(draft, path)
            elif await client.exists(path):
                raise ObjectExists(path)
            else:
                await self._rename(client, draft, path)
        finally:
            with contextlib.suppress(asyncssh.SFTPNoSuchFile):
                await client.remove(draft)

    async def _sync(self, file: asyncssh.SFTPClientFile) -> None:
        with contextlib.suppress(asyncssh.SFTPOpUnsupported):
            await file.fsync()

    async def _rename(self, client: asyncssh.SFTPClient, draft: str, path: str) -> None:
        """A plain rename never replaces: the server links and unlinks."""
        try:
            await client.rename(draft, path)
        except asyncssh.SFTPFailure:
            if await client.exists(path):
                raise ObjectExists(path) from None
            raise

    async def _read(self, path: str) -> bytes:
        client = await self._connected()
        async with client.open(path, "rb") as file:
            found: bytes = await file.read(MAX_OBJECT + 1)
            return found

    async def _delete(self, path: str) -> None:
        client = await self._connected()
        with contextlib.suppress(asyncssh.SFTPNoSuchFile):
            await client.remove(path)

    async def _list(self, folder: str) -> list[StoredObject]:
        client = await self._connected()
        found: list[StoredObject] = []
        drafts: dict[str, float] = {}
        waiting = [folder]
        while waiting:
            inside = waiting.pop()
            try:
                entries = [entry async for entry in client.scandir(f"{self._root}/{inside}")]
            except asyncssh.SFTPNoSuchFile:
                continue
            for entry in entries:
                name = f"{inside}/{entry.filename!s}"
                if str(entry.filename).startswith(_DRAFT):
                    drafts[f"{self._root}/{name}"] = float(entry.attrs.mtime or 0)
                if not is_object_name(name):
                    continue
                if entry.attrs.type == asyncssh.FILEXFER_TYPE_DIRECTORY:
                    waiting.append(name)
                else:
                    found.append(StoredObject(name, int(entry.attrs.size or 0), float(entry.attrs.mtime or 0)))
        if drafts:
            await self._remove_old(client, drafts)
        return found

    async def _remove_old(self, client: asyncssh.SFTPClient, drafts: Mapping[str, float]) -> None:
        """What a writer that was killed, or cut off, has left. A young one may be in use."""
        now = await self._read_clock()
        for path, modified in drafts.items():
            if now - modified > _OLD_DRAFT:
                with contextlib.suppress(asyncssh.SFTPNoSuchFile):
                    await client.remove(path)

    async def _read_clock(self) -> float:
        client = await self._connected()
        await client.makedirs(self._root or "/", exist_ok=True)
        draft = f"{self._root}/{_DRAFT}{secrets.token_hex(8)}"
        async with client.open(draft, "xb"):
            pass
        try:
            return float((await client.stat(draft)).mtime or 0)
        finally:
            await client.remove(draft)
