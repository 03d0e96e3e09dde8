"""The stages of a boot, in order, each with its duration in the timeline."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Literal, get_args

from freehold.keeper.recorder import Record
from freehold.observe.tracing import span

Stage = Literal["manifest", "paths", "artifacts", "keys", "history", "computer", "gateway", "seal"]
STAGES: tuple[Stage, ...] = get_args(Stage)

Announce = Callable[[str, dict[str, Any]], None]
"""Told what happens as it happens: `stage_began`, `stage`, `sealed`, `ready`, `not-ready`, `lost`, `stopping`, `straggling`, `stopped`."""


class Stages:
    """`began` is when the boot did; stages may overlap (`since`), and end in order."""

    def __init__(self, record: Record, announce: Announce) -> None:
        self._record = record
        self._announce = announce
        self.began = asyncio.get_running_loop().time()
        self.current: Stage = "manifest"

    @contextlib.contextmanager
    def stage(self, name: Stage, since: float | None = None) -> Iterator[None]:
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
