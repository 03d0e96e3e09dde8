"""The gateway as a program: `python -m freehold.gateway --home FOLDER`, started by the keeper."""

import argparse
import asyncio
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
    from freehold.gateway.house import open_house
    from freehold.gateway.serving import server_config
    from freehold.observe.exposition import serve_metrics
    from freehold.observe.tracing import configure_tracing

    loaded = require_manifest(home.manifest, os.environ)
    manifest = loaded.manifest
    observe = manifest.observe
    # The keeper reads what we print and shows it as the owner likes; lines for people are for those who ask for them.
    level = cast("Level", observe.log_level)  # a rule of the manifest refuses any other
    configure_logging(level, "human" if observe.log_format == "people" else "json", "gateway")
    configure_tracing(observe.otlp_endpoint)
    with open_house(home, loaded) as house:
        config = server_config(build_app(house), manifest.gateway.host, manifest.gateway.port)
        async with serve_metrics(observe.metrics_host, observe.metrics_port):
            await uvicorn.Server(config).serve()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m freehold.gateway")
    parser.add_argument("--home", required=True)
    options = parser.parse_args()
    home = find_home(options.home)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is the keeper's to handle
    configure_logging("info", "json", "gateway")
    try:
        asyncio.run(serve(home))
    except FreeholdError as error:
        print(error, file=sys.stderr)  # noqa: T201 - captured by the keeper
        sys.exit(1)


if __name__ == "__main__":
    main()
