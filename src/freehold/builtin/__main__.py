"""`python -m freehold.builtin`: serve one client on stdin and stdout until it hangs up."""

import asyncio

from freehold.builtin.program import serve

if __name__ == "__main__":
    asyncio.run(serve())
