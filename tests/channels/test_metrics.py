"""What Prometheus is told of channels."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from freehold.channels.metrics import add_channel_metrics
from freehold.channels.outbox import DraftMessage, Outbox
from freehold.channels.received import ReceivedMessages
from freehold.channels.store import ChannelStore
from freehold.gateway.services import Services
from freehold.observe.metrics import MetricsRegistry
from freehold.timeline import Timeline

pytestmark = pytest.mark.asyncio


async def test_channels_messages_that_wait_and_strangers_are_counted(tmp_path: Path) -> None:
    metrics = MetricsRegistry()

    def read() -> dict[str, float]:
        lines = [line.rpartition(" ") for line in metrics.expose().splitlines() if not line.startswith("#")]
        return {name: float(value) for name, _, value in lines if float(value)}

    with Timeline(tmp_path / "timeline.db") as timeline:
        given: Any = SimpleNamespace(timeline=timeline)
        refresh = add_channel_metrics(metrics, cast("Services", given))
        await refresh()
        assert read() == {}  # before there is a table
        store = ChannelStore(timeline)
        store.prepare()
        for name in ("telegram", "matrix"):
            store.add(name, "telegram", {}, who="owner")
        store.set_state("matrix", "away", "no route to host")
        for number in range(2):
            Outbox(timeline).add("telegram", DraftMessage(f"key-{number}", "needs-you", "One", "Text", "/", 0.0))
        ReceivedMessages(timeline).store("telegram", [], "cursor", 3)
        await refresh()
        assert read() == {
            'freehold_channels{state="ok"}': 1,
            'freehold_channels{state="away"}': 1,
            "freehold_channel_messages_waiting": 2,
            "freehold_channel_strangers": 3,
        }
