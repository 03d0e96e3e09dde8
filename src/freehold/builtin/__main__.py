"""`python -m freehold.builtin`: serves one client on stdin and stdout until it closes them."""

import asyncio

from freehold.builtin.agent import serve

if __name__ == "__main__":
    asyncio.run(serve())
