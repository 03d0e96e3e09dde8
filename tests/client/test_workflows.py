"""Workflows through the Python client, async and sync."""

import asyncio
from pathlib import Path

import pytest
from tests.gateway.running_gateway import running_gateway

from freehold.client import Freehold
from freehold.errors import FreeholdError


async def test_a_program_begins_signals_ends_and_retries_a_workflow(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as gateway:
        secret = gateway.token("routines", "prompt", "terminal")["authorization"].removeprefix("Bearer ")
        async with Freehold(gateway.url, token=secret) as home:
            begun = await home.workflows.run("flows/w.py", {"week": 12}, budget=1.5, asks="refuse")
            assert (begun.name, begun.budget, begun.is_finished) == ("w", 1.5, False)
            assert (await home.workflows.signal(begun.id, "go", {"a": 1})).file == "flows/w.py"
            assert (await home.workflows.get(begun.id)).data == {"week": 12}
            with pytest.raises(FreeholdError) as caught:
                await home.workflows.answer(begun.id, "1", "yes")
            assert caught.value.code == "workflow.step.not-found"
            assert (await home.workflows.cancel(begun.id)).state == "cancelled"
            assert (await home.workflows.retry(begun.id)).state == "due"
            assert (await home.workflows.get(begun.id)).steps == ()

        def use_sync() -> list[str]:
            with Freehold.sync(gateway.url, token=secret) as home:
                return [one.file for one in home.workflows.list(limit=5).workflows]

        assert await asyncio.to_thread(use_sync) == ["flows/w.py"]
