"""Updates dependencies, and asks before it commits. As a routine: cron = "0 3 * * *"."""

from freehold_workflow import agent, ask, command


async def main(data):
    await agent("Update the dependencies of /workspace/app to their newest versions, and run its tests.")
    changes = (await command("git -C app diff --stat")).output
    if changes and await ask(f"Commit this?\n{changes[:2000]}", ["commit", "leave it"]) == "commit":
        await command("git -C app commit -qam 'Update dependencies'")
        return "The dependencies are updated."
    return None  # nothing to report
