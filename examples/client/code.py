"""Code in a context, with its output as it arrives. clients/typescript/examples/code.ts is the same."""

import asyncio
import sys

from freehold import Freehold, FreeholdError


async def main(url: str = "http://localhost:3000", token: str | None = None) -> None:
    async with Freehold(url, token=token) as home:
        context = await home.code.create_context("python")
        await home.code.execute_in(context.id, "x = 40")
        async for part in home.code.stream_in(context.id, "print('counting')\nx + 2"):
            if part.output is not None:
                print(part.output.text, end="")
            if part.item is not None:
                print(part.item.text)
        print(await home.code.evaluate_in(context.id, "f'{x} and 2'"))
        try:
            await home.code.evaluate("python", "x")
        except FreeholdError as error:
            print(error.code)
        await home.code.delete_context(context.id)
        try:
            await home.code.context(context.id)
        except FreeholdError as error:
            print(error.code)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
