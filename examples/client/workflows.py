"""A Python file with durable steps, which asks once. clients/typescript/examples/workflows.ts is the same."""

import asyncio
import sys

from freehold import Freehold


async def main(url: str = "http://localhost:3000", token: str | None = None, file: str = "flows/nightly.py") -> None:
    async with Freehold(url, token=token) as home:
        begun = await home.workflows.run(file, {"week": 12}, budget=0.5)
        flow = await home.workflows.get(begun.id)
        while not flow.is_finished:
            for step in flow.steps:
                if step.kind == "ask" and step.state == "waiting":
                    print(step.question, *step.choices)
                    await home.workflows.answer(flow.id, step.place, step.choices[0])
            await asyncio.sleep(0.2)
            flow = await home.workflows.get(flow.id)
        print(flow.state, flow.result)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
