"""The stages of a boot. The duration of each is recorded in the timeline."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Literal, get_args

from freehold.keeper.recorder import RecordEvent
from freehold.observe.tracing import span

BootStage = Literal["manifest", "paths", "artifacts", "keys", "history", "computer", "gateway", "seal"]
BOOT_STAGES: tuple[BootStage, ...] = get_args(BootStage)

Announce = Callable[[str, dict[str, Any]], None]
"""Called with each event: `stage_began`, `stage`, `sealed`, `ready`, `not-ready`, `lost`, `stopping`, `straggling`, `stopped`."""


class BootStages:
    """`began` is the start of the boot. Stages may overlap (`since`); they end in order."""

    def __init__(self, record: RecordEvent, announce: Announce) -> None:
        self._record = record
        self._announce = announce
        self.began = asyncio.get_running_loop().time()
        self.current: BootStage = "manifest"

    @contextlib.contextmanager
    def stage(self, name: BootStage, since: float | None = None) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        begin = loop.time() if since is None else since
        self.current = name
        self._announce("stage_began", {"stage": name})
        with span(f"boot.{name}"):
            yield
        end = loop.time()
        data = {"stage": name, "seconds": round(end - begin, 4), "at": round(end - self.began, 4)}
        self._record("boot.stage_finished", data)
        self._announce("stage", data)
