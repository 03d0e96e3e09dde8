"""The computers of one node, and what the head may do with them.

The head has one control connection, and one more for each link and each folder. All are TLS 1.3 with both certificates
known by heart. A computer whose head is silent for `KEEP_SECONDS` is ended: the head has told its owner that it is lost.
"""

import asyncio
import contextlib
import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from freehold.computer.contract.backend import Machine, find_host_pid
from freehold.computer.contract.report import LimitEvent
from freehold.computer.library.launch import launch
from freehold.computer.library.removal import remove_tree
from freehold.errors import FreeholdError
from freehold.fleet.content_cache import ContentCache
from freehold.fleet.folder_copy import SentState, receive_folder, send_changes
from freehold.fleet.node_cards import NodeCards
from freehold.fleet.relay import relay
from freehold.fleet.remote_spec import HOME_PART, WORKSPACE_PART, RemoteSpec, build_spec, decode_reported
from freehold.fleet.shown_folders import ShownFolders
from freehold.fleet.wire import PIECE, Stream, abort_stream, describe_error, encode_message, read_message
from freehold.home import Home

KEEP_SECONDS = 60.0
SILENCE_SECONDS = 10.0
"""A head that sends nothing for so long is gone, whatever the network says: it sends something every second."""
LINGER_SECONDS = 5.0
WORDS_PAUSE = 0.5
_ID = re.compile(r"[0-9a-f]{32}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_log = logging.getLogger("freehold.fleet")


@dataclass
class HostedComputer:
    """`sent` is what the head knows of each folder, so that only changes are read and taken again."""

    folder: Path
    spec: RemoteSpec
    machine: Machine | None = None
    launching: "asyncio.Future[Machine] | None" = None
    words: str = ""
    ended: int | None = None
    sent: dict[str, SentState] = field(default_factory=lambda: {WORKSPACE_PART: SentState(), HOME_PART: SentState()})
    taking: asyncio.Lock = field(default_factory=asyncio.Lock)
    holds: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)


class NodeHost:
    """`serve` connections of the head with `accept`, while `run` watches over the computers."""

    def __init__(
        self,
        folder: Path,
        cache: ContentCache,
        versions: dict[str, str],
        follow_ray: Callable[[str], None],
        cards: NodeCards,
        leave: Callable[[], None],
    ) -> None:
        """`follow_ray` gets the name of the Ray that the head has, each time that it may be another one. `leave` ends
        the program of the node: the head lets this machine go."""
        self._folder = folder
        self._follow_ray = follow_ray
        self._cards = cards
        self._leave = leave
        self._cache = cache
        self._versions = versions
        self._shown = ShownFolders(folder / "shown", cache)
        self._computers: dict[str, HostedComputer] = {}
        self._control: asyncio.StreamWriter | None = None
        self._is_missed_since: float | None = None
        self._group = asyncio.TaskGroup()
        self._root = folder / "computers"
        remove_tree(self._root)
        self._root.mkdir(parents=True, mode=0o700)

    async def run(self) -> None:
        """Until cancelled. Every computer has ended then."""
        async with self._group:
            try:
                while True:
                    await asyncio.sleep(WORDS_PAUSE)
                    self._report_words()
                    await self._end_forgotten()
            finally:
                await asyncio.shield(self._stop_all())
                if self._control is not None:
                    self._control.transport.abort()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of the head. What it says decides what it is for."""
        try:
            async with asyncio.timeout(SILENCE_SECONDS):
                opening = await read_message(reader)
            await self._serve(opening, (reader, writer))
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            pass
        except FreeholdError as error:
            with contextlib.suppress(OSError):
                writer.write(encode_message({"error": describe_error(error)}))
                await _linger(reader)
        finally:
            abort_stream(writer)

    async def _serve(self, opening: dict[str, Any], stream: Stream) -> None:
        kind = opening.get("open")
        if kind == "control":
            await self._serve_control(stream)
        elif kind == "link":
            path = str(self._find(opening.get("computer")).folder / "link")
            await relay(stream, await asyncio.open_unix_connection(path, limit=PIECE))
        elif kind == "fill":
            computer, part = self._find(opening.get("computer")), _read_part(opening)
            with _said_why():
                found = await receive_folder(stream, computer.folder / part, computer.spec.state_limits, self._cache)
            computer.sent[part].settled = found
            await _say_done(stream[1])
        elif kind == "show":
            with _said_why():
                await self._receive_shown(opening.get("digest"), stream)
        elif kind == "take":
            computer, part = self._find(opening.get("computer")), _read_part(opening)
            wants_base = opening.get("base") is True
            async with computer.taking:
                folder, limits = computer.folder / part, computer.spec.state_limits
                await send_changes(stream, folder, computer.sent[part], limits, is_base_wanted=wants_base)
        else:
            raise FreeholdError("fleet.bad-message", "The connection does not say what it is for")

    async def _receive_shown(self, digest: object, stream: Stream) -> None:
        if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
            raise FreeholdError("fleet.bad-message", "A folder has no valid digest")
        await self._shown.receive(stream, digest)
        await _say_done(stream[1])

    async def _serve_control(self, stream: Stream) -> None:
        reader, writer = stream
        if self._control is not None:  # the head has come back before the old connection was seen to be lost
            self._control.transport.abort()
        self._control, self._is_missed_since = writer, None
        hello = {"computers": list(self._computers), "versions": self._versions, "ended": self._list_ended()}
        writer.write(encode_message(hello))
        try:
            while True:
                async with asyncio.timeout(SILENCE_SECONDS):
                    message = await read_message(reader)
                if "id" in message:
                    self._group.create_task(self._answer(message, writer))
                else:
                    writer.write(encode_message({"pong": True}))
        finally:
            if self._control is writer:
                self._control = None
                self._is_missed_since = asyncio.get_running_loop().time()

    def _list_ended(self) -> dict[str, int]:
        return {id: one.ended for id, one in self._computers.items() if one.ended is not None}

    async def _answer(self, message: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        try:
            reply: dict[str, Any] = {"id": message["id"], "result": await self._obey(message)}
        except FreeholdError as error:
            reply = {"id": message["id"], "error": describe_error(error)}
        except Exception:
            _log.exception("A request of the head failed")
            failure = FreeholdError("fleet.failed", "The node could not do it; its log says why")
            reply = {"id": message["id"], "error": describe_error(failure)}
        with contextlib.suppress(OSError):
            writer.write(encode_message(reply))

    async def _obey(self, message: dict[str, Any]) -> Any:
        do, id = message.get("do"), message.get("computer")
        if do == "prepare":
            prepared = await self._prepare(id, decode_reported(RemoteSpec, message.get("spec")))
            if message.get("start") is not True:
                return prepared
            do = "start"  # nothing is sent before
        if do == "ray":
            return self._follow_ray(str(message.get("session")))
        if do == "leave":
            return self._leave()
        if do == "escapes":
            return await _try_escapes(self._folder, message.get("quick") is True)
        computer = self._find(id)
        assert isinstance(id, str)
        if do == "start":
            return await self._start(id, computer)
        if do == "stop":
            return await self._stop(id, float(message.get("grace", 0)), keep=bool(message.get("keep")))
        if do == "remove":
            return await self._remove(id)
        machine = computer.machine
        if machine is None or computer.ended is not None:
            raise FreeholdError("computer.ended", "The computer has ended")
        if do == "usage":
            return asdict(machine.usage())
        if do == "sleep":
            return asdict(await machine.sleep())
        if do == "wake":
            return await machine.wake()
        raise FreeholdError("fleet.bad-message", f"A node cannot do {str(do)[:40]!r}")

    def _find(self, id: object) -> HostedComputer:
        computer = self._computers.get(id) if isinstance(id, str) else None
        if computer is None:
            raise FreeholdError("computer.ended", "There is no such computer on this node")
        return computer

    async def _prepare(self, id: object, spec: RemoteSpec) -> dict[str, Any]:
        """Room for its folders. Says which of the read-only folders must be sent. A start that the head could not see
        the end of is made anew."""
        if not isinstance(id, str) or not _ID.fullmatch(id):
            raise FreeholdError("fleet.bad-message", "The id of the computer is not valid")
        if id in self._computers:
            await self._remove(id)
        folder = self._root / id[:16]
        for part in (WORKSPACE_PART, HOME_PART):
            (folder / part).mkdir(parents=True, mode=0o700)
        self._computers[id] = HostedComputer(folder, spec)
        await self._shown.remove_unused()
        return {"missing": sorted({one.digest for one in spec.shown if one.digest not in self._shown})}

    async def _start(self, id: str, computer: HostedComputer) -> dict[str, Any]:
        digests = [one.digest for one in computer.spec.shown]
        if any(digest not in self._shown for digest in digests):
            raise FreeholdError("computer.mount-missing", "A folder that the computer should see was not sent")
        computer.holds.enter_context(self._shown.held(digests))
        folders = {digest: self._shown.find(digest) for digest in digests}
        devices = computer.holds.enter_context(self._cards.held(computer.spec.gpus))
        spec = build_spec(computer.spec, computer.folder, folders, devices)
        computer.launching = asyncio.ensure_future(launch(spec, computer.folder / "link"))
        try:
            machine = computer.machine = await computer.launching
        except asyncio.CancelledError:
            raise FreeholdError("computer.ended", "The computer was ended while it was starting") from None
        machine.subscribe(self._make_reporter(id))
        self._group.create_task(self._watch(id, computer))
        return {"isolation": asdict(machine.isolation), "pid": find_host_pid(machine)}

    def _make_reporter(self, id: str) -> Callable[[LimitEvent], None]:
        return lambda event: self._notify({"notice": "event", "computer": id, "event": asdict(event)})

    async def _watch(self, id: str, computer: HostedComputer) -> None:
        assert computer.machine is not None
        code = await computer.machine.wait()
        self._report_words()
        computer.ended = code
        self._notify({"notice": "ended", "computer": id, "code": code})

    async def _stop(self, id: str, grace: float, *, keep: bool = False) -> dict[str, Any]:
        """End it. With `keep` its folders stay until `remove`, so that the head can take them."""
        computer = self._find(id)
        code = 0
        await _end_launch(computer)
        if computer.machine is not None:
            await computer.machine.stop(grace)
            code = await computer.machine.wait()
        if not keep:
            await self._remove(id)
        return {"code": code}

    async def _remove(self, id: str) -> None:
        computer = self._computers.pop(id)
        await _end_launch(computer)
        if computer.machine is not None:
            await computer.machine.stop(0)
        computer.holds.close()
        await asyncio.to_thread(remove_tree, computer.folder)

    def _report_words(self) -> None:
        for id, computer in self._computers.items():
            words = computer.machine.last_words() if computer.machine is not None else ""
            if words != computer.words:
                computer.words = words
                self._notify({"notice": "words", "computer": id, "words": words})

    def _notify(self, message: dict[str, Any]) -> None:
        if self._control is not None:
            self._control.write(encode_message(message))

    async def _end_forgotten(self) -> None:
        since = self._is_missed_since
        if since is None or asyncio.get_running_loop().time() - since < KEEP_SECONDS:
            return
        if self._computers:
            _log.warning("The head is silent: %d computers are ended", len(self._computers))
            await self._stop_all()

    async def _stop_all(self) -> None:
        async def stop(id: str) -> None:
            with contextlib.suppress(FreeholdError):  # it has just ended
                await self._stop(id, 0)

        await asyncio.gather(*map(stop, list(self._computers)))


async def _try_escapes(folder: Path, quick: bool) -> dict[str, Any]:
    """Every escape attempt of `freehold doctor`, on this machine."""
    from freehold.doctor.events import AttemptEnded, DoctorEvent
    from freehold.doctor.process import DoctorFailed, DoctorProcess, doctor_command

    verdicts: list[dict[str, Any]] = []

    def take(event: DoctorEvent) -> None:
        if isinstance(event, AttemptEnded):
            verdicts.append(asdict(event.verdict))

    home = Home(folder / "doctor", folder / "doctor" / "run")
    try:
        await DoctorProcess(doctor_command(home, quick)).follow(take)
    except DoctorFailed as error:
        raise FreeholdError("fleet.failed", f"The doctor of the node has failed: {error}") from error
    return {"attempts": verdicts}


async def _end_launch(computer: HostedComputer) -> None:
    """After a launch that was cancelled nothing is left. One that is complete has a machine."""
    launching = computer.launching
    if launching is not None and not launching.done():
        launching.cancel()
        await asyncio.wait({launching})
    if launching is not None and not launching.cancelled() and launching.exception() is None:
        computer.machine = launching.result()


async def _linger(reader: asyncio.StreamReader) -> None:
    """Until the head has read what was said: to end at once would take it back, while the head is still sending."""
    async with asyncio.timeout(LINGER_SECONDS):
        while await reader.read(PIECE):
            pass


@contextlib.contextmanager
def _said_why() -> Iterator[None]:
    """A disk that is full is told to the head. A connection that has ended cannot be."""
    try:
        yield
    except (ConnectionError, TimeoutError):
        raise
    except OSError as error:
        why = f"The node cannot write a folder: {error.strerror or type(error).__name__}"
        raise FreeholdError("fleet.failed", why, hint="Make room on the disk of the node") from error


async def _say_done(writer: asyncio.StreamWriter) -> None:
    writer.write(encode_message({"done": True}))
    await writer.drain()


def _read_part(opening: dict[str, Any]) -> str:
    part = opening.get("part")
    if part not in (WORKSPACE_PART, HOME_PART):
        raise FreeholdError("fleet.bad-message", "A computer has no such folder")
    return str(part)
