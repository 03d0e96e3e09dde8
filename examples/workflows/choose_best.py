"""Lets five agents try, and a sixth choose."""

from freehold_workflow import agent, gather

TASK = "Propose a name for a library that reads calendars. Answer with the name and one sentence."


async def main(data):
    tries = await gather(*(agent(f"Attempt {number}: {TASK}") for number in range(1, 6)))
    return await agent("Which of these proposals is the best one, and why?", data=tries)
