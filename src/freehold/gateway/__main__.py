"""The gateway as a program: `python -m freehold.gateway --home FOLDER [--wait FD]`, started by the keeper."""

import asyncio
import ctypes
import gc
import getopt
import os
import signal
import sys
from importlib import import_module
from typing import cast

from freehold.errors import FreeholdError
from freehold.home import Home, find_home
from freehold.manifest import require_manifest
from freehold.observe.logs import LogLevel, configure_logging

LOADED_EARLY = ("gateway.app", "gateway.metrics", "gateway.server", "observe.metrics_server", "observe.tracing")


async def serve(home: Home) -> None:
    import uvicorn

    from freehold.gateway.app import build_app
    from freehold.gateway.metrics import GatewayMetrics, RequestMetrics
    from freehold.gateway.server import make_server_config
    from freehold.gateway.services import open_services
    from freehold.gateway.topic_publisher import TopicPublisher
    from freehold.keeper.ports import bind_port
    from freehold.observe.metrics_server import serve_metrics
    from freehold.observe.tracing import configure_tracing, shutdown_tracing

    loaded = require_manifest(home.manifest, os.environ)
    manifest = loaded.manifest
    observe = manifest.observe
    # The keeper reads these lines and formats them for the owner. Plain text only when the manifest asks for it.
    level = cast("LogLevel", observe.log_level)  # the manifest check refuses any other
    configure_logging(level, "human" if observe.log_format == "people" else "json", "gateway")
    configure_tracing(observe.otlp_endpoint, program="freehold-gateway")
    with open_services(home, loaded) as services:
        publisher = TopicPublisher(services)
        failed = False

        def stop() -> None:
            """Without its background tasks the gateway is of no use: it ends, and the keeper starts another."""
            nonlocal failed
            failed = server.should_exit = True

        app = build_app(services, publisher=publisher, on_ready=_freeze_heap, on_loaded=_freeze_heap, on_failed=stop)
        config = make_server_config(
            RequestMetrics(app), manifest.gateway.host, manifest.gateway.port, app.addresses.is_proxy
        )
        server = uvicorn.Server(config)
        metrics = GatewayMetrics(services, publisher.health)
        try:
            async with serve_metrics(observe.metrics_host, observe.metrics_port, refresh=metrics.refresh):
                await server.serve(sockets=bind_port(config.host, config.port, "gateway.port"))
        finally:
            await asyncio.to_thread(shutdown_tracing)
    if failed:
        sys.exit(1)


def _freeze_heap() -> None:
    """What was loaded lives until the end: exclude it from garbage collection. What loading took besides is given back."""
    ctypes.CDLL(None).malloc_trim(0)
    gc.freeze()
    gc.enable()


def _wait_for_word(descriptor: int) -> bool:
    """Load what `serve` needs, open and read nothing of the home, and wait. False when the keeper has ended or given up."""
    for module in ("uvicorn", *(f"freehold.{name}" for name in LOADED_EARLY)):
        import_module(module)
    with os.fdopen(descriptor, "rb", buffering=0) as pipe:
        return bool(pipe.read(1))


def main() -> None:
    gc.disable()  # until everything is loaded; saves a tenth of the start time
    # Only the keeper writes these words. `argparse` would stay in memory for as long as the gateway runs: half a megabyte.
    options = dict(getopt.getopt(sys.argv[1:], "", ["home=", "wait="])[0])
    home = find_home(options["--home"])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the keeper handles Ctrl-C
    # The server raises its own stop signal again when it is done. That must not interrupt what closes after it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    configure_logging("info", "json", "gateway")
    if "--wait" in options and not _wait_for_word(int(options["--wait"])):
        return
    try:
        asyncio.run(serve(home))
    except FreeholdError as error:
        print(error, file=sys.stderr)  # noqa: T201 - captured by the keeper
        sys.exit(1)


if __name__ == "__main__":
    main()
