"""`python -m freehold.testing.model [PORT]`: the scripted model as a program, to try agents by hand."""

import asyncio
import contextlib
import json
import sys

from freehold.testing.server import ScriptedModel


async def serve(port: int) -> None:
    """Until cancelled. Prints its address, then one line a request."""
    async with ScriptedModel(port=port, log=True) as model:
        sys.stdout.write(json.dumps({"url": model.url}) + "\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(int(sys.argv[1]) if len(sys.argv) > 1 else 0))
