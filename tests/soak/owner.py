"""The owner's own hands in the soak: files saved and restored through the API, and commands by SSH."""

import asyncio
import base64
import random

from tests.soak.client import RETRY_INTERVAL, SoakClient
from tests.soak.stand import SoakStand
from tests.soak.workers import SoakRecord

SSH_PAUSE = 2.0
FILES = 6


class FileWorker:
    """Saves files, and now and then restores one from an earlier entry of history."""

    def __init__(self, client: SoakClient, record: SoakRecord, dice: random.Random) -> None:
        self._client = client
        self._record = record
        self._dice = dice
        self._number = 0

    async def run(self) -> None:
        while not self._record.stopping.is_set():
            path = f"owner/{self._dice.randrange(FILES)}.txt"
            if self._dice.random() < 0.3:
                await self._restore(path)
            else:
                await self._save(path)
            await asyncio.sleep(RETRY_INTERVAL)

    async def _save(self, path: str) -> None:
        self._number += 1
        content = f"owner-{self._number}-{self._dice.randrange(1 << 32):08x}\n"
        self._record.files.begin(path, content)
        # Each try writes the same content, so that it may be repeated.
        while True:
            reply = await self._client.ask("PUT", f"/v1/files/content?path={path}", content=content.encode())
            if reply is not None and reply.ok:
                self._record.files.settle(path, content)
                self._record.counts["saves acknowledged"] += 1
                return
            await asyncio.sleep(RETRY_INTERVAL)

    async def _restore(self, path: str) -> None:
        name = f"workspace/{path}"
        page = await self._client.ask("GET", f"/v1/history?path={name}&limit=10")
        if page is None or not page.ok or not page.body["entries"]:
            return
        entry = self._dice.choice(page.body["entries"])["id"]
        shown = await self._client.ask("GET", f"/v1/history/{entry}/file?path={name}")
        if shown is None or not shown.ok or shown.body["base64"] is None:
            return
        content = base64.b64decode(shown.body["base64"]).decode()
        before = self._record.files.begin(path, content)
        reply = await self._client.ask("POST", "/v1/history/restore", {"entry": entry, "paths": [name]})
        if reply is None:
            return
        if reply.ok and not reply.body["unsettled"]:
            self._record.files.settle(path, content)
            self._record.counts["restores acknowledged"] += 1
        elif "Nothing was changed" in str(reply.body):
            self._record.files.refuse(path, before)


class SshWorker:
    """Runs a command by SSH every few seconds."""

    def __init__(self, stand: SoakStand, record: SoakRecord) -> None:
        self._stand = stand
        self._record = record

    async def run(self) -> None:
        number = 0
        while not self._record.stopping.is_set():
            number += 1
            line = f"ssh-{number}"
            self._record.files.begin_line("ssh.txt", line)
            done = await self._stand.run("ssh", "-o", "ConnectTimeout=10", f"echo {line} >> ssh.txt")
            if done.returncode == 0:
                self._record.files.settle_line("ssh.txt", line)
                self._record.counts["commands by SSH acknowledged"] += 1
            else:
                self._record.counts[f"commands by SSH failed: {done.stderr.strip()[-80:]}"] += 1
            await asyncio.sleep(SSH_PAUSE)
