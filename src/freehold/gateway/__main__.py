"""The gateway as a program: `python -m freehold.gateway --home FOLDER`, started by the keeper."""

import argparse
import asyncio
import gc
import os
import signal
import sys
from typing import cast

from freehold.errors import FreeholdError
from freehold.home import Home, find_home
from freehold.manifest import require_manifest
from freehold.observe.logs import Level, configure_logging


async def serve(home: Home) -> None:
    import uvicorn

    from freehold.gateway.app import build_app
    from freehold.gateway.feeds import Feeds
    from freehold.gateway.house import open_house
    from freehold.gateway.measures import Measured, Measures
    from freehold.gateway.serving import server_config
    from freehold.observe.exposition import serve_metrics
    from freehold.observe.tracing import configure_tracing, shutdown_tracing

    loaded = require_manifest(home.manifest, os.environ)
    manifest = loaded.manifest
    observe = manifest.observe
    # The keeper reads what we print and shows it as the owner likes; lines for people are for those who ask for them.
    level = cast("Level", observe.log_level)  # a rule of the manifest refuses any other
    configure_logging(level, "human" if observe.log_format == "people" else "json", "gateway")
    configure_tracing(observe.otlp_endpoint, program="freehold-gateway")
    with open_house(home, loaded) as house:
        feeds = Feeds(house)
        app = Measured(build_app(house, feeds=feeds, on_ready=_settle))
        config = server_config(app, manifest.gateway.host, manifest.gateway.port)
        measures = Measures(house, feeds.health)
        try:
            async with serve_metrics(observe.metrics_host, observe.metrics_port, refresh=measures.refresh):
                await uvicorn.Server(config).serve()
        finally:
            await asyncio.to_thread(shutdown_tracing)


def _settle() -> None:
    """What is there at the start stays: the collector need not look through it again and again."""
    gc.freeze()
    gc.enable()


def main() -> None:
    gc.disable()  # until all is loaded; a tenth of the time to get ready
    parser = argparse.ArgumentParser(prog="python -m freehold.gateway")
    parser.add_argument("--home", required=True)
    options = parser.parse_args()
    home = find_home(options.home)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is the keeper's to handle
    # The server raises the signal that ended it once more when it is done: that must not cut off what closes after it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    configure_logging("info", "json", "gateway")
    try:
        asyncio.run(serve(home))
    except FreeholdError as error:
        print(error, file=sys.stderr)  # noqa: T201 - captured by the keeper
        sys.exit(1)


if __name__ == "__main__":
    main()
