"""A gateway whose background tasks have failed must not go on: it would answer, and do nothing."""

import asyncio
from pathlib import Path

import httpx2
import pytest
from tests.gateway.running_gateway import UnsignalledServer, listen
from tests.support.condition import DEADLINE

from freehold.agents.sessions.service import SessionService
from freehold.gateway.app import build_app
from freehold.gateway.server import make_server_config
from freehold.gateway.services import open_services
from freehold.home import Home, ensure_private_folder
from freehold.manifest import load_manifest


async def test_it_says_that_it_failed_so_that_the_keeper_starts_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    home = Home(root=tmp_path, run=tmp_path / "run")
    for folder in (home.run, home.vault):
        ensure_private_folder(folder)
    ready, breaks, failed = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def run(_service: SessionService) -> None:
        await breaks.wait()
        raise ValueError("a bug")

    monkeypatch.setattr(SessionService, "run", run)
    with listen() as listener:
        port = listener.getsockname()[1]
        home.manifest.write_text(f"[gateway]\nport = {port}\n")
        with open_services(home, load_manifest(home.manifest, {}, home=home.root)) as services:
            app = build_app(services, on_ready=ready.set, on_failed=failed.set)
            server = UnsignalledServer(make_server_config(app, "127.0.0.1", port))
            async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as group:
                group.create_task(server.serve(sockets=[listener]))
                await ready.wait()
                address = f"http://localhost:{port}"
                async with httpx2.AsyncClient(base_url=address, trust_env=False, timeout=DEADLINE) as http:
                    assert (await http.get("/livez")).status_code == 200
                assert not failed.is_set()
                breaks.set()
                await failed.wait()
                server.should_exit = True
    assert "the background tasks of the gateway have failed" in caplog.text
