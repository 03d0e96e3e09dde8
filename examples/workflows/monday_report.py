"""Writes a report of the week. As a routine: cron = "0 8 * * MON"."""

from pathlib import Path

from freehold_workflow import agent, command, step


async def main(data):
    log = await command("git -C app log --since='7 days ago' --oneline")
    report = await agent("Write a short report of what these commits have changed.", data=log.output)
    await step(Path("/workspace/report.md").write_text, report)
    return report
