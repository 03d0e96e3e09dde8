"""run and process."""

from typing import Literal

from pydantic_ai import RunContext

from freehold.builtin.jobs import Job
from freehold.builtin.step import Trouble, shorten
from freehold.builtin.work import Work

MAX_OUTPUT = 30_000
MAX_JOBS = 16
LONGEST = 3600


async def run(ctx: RunContext[Work], command: str, timeout: int = 120, background: bool = False) -> str:
    """Run a command with bash in the workspace and get what it printed and its exit code.

    Args:
        command: The command. Nobody can answer it: it has no input.
        timeout: Seconds after which it is ended.
        background: Leave it running (a server, a watcher) and go on at once; see it with process.
    """
    session = ctx.deps.session
    given = {"command": command, "timeout": timeout, "background": background}
    async with ctx.deps.step(ctx.tool_call_id, command, "execute", given) as step:
        if background and sum(job.exit_code is None for job in session.jobs.values()) >= MAX_JOBS:
            raise Trouble(f"{MAX_JOBS} commands run in the background already; stop one with process")
        await step.permit()
        job = await Job.start(command, session.cwd)
        if background:
            name = f"job{len(session.jobs) + 1}"
            session.jobs[name] = job
            await job.wait(1.0)
            state = "runs in the background" if job.exit_code is None else f"ended with {job.exit_code}"
            return await step.end(f"{name} {state}\n{_tail(job)}".strip())
        try:
            ended = await job.wait(min(max(timeout, 1), LONGEST), step.show_text)
        finally:
            if job.exit_code is None:
                await job.end()
        output = _tail(job)
        if not ended:
            words = f"{output}\n[ended after {timeout} s; run it in the background or with a longer timeout]"
            return await step.end(words, failed=True)
        words = f"{output}\n[exit code {job.exit_code}]" if job.exit_code or not output else output
        return await step.end(words.strip(), failed=bool(job.exit_code))


async def process(ctx: RunContext[Work], name: str, action: Literal["look", "wait", "stop"], timeout: int = 30) -> str:
    """See, wait for or stop a command that runs in the background.

    Args:
        name: Its name, such as job1.
        action: What to do.
        timeout: Seconds to wait for its end at most.
    """
    jobs = ctx.deps.session.jobs
    given = {"name": name, "action": action}
    async with ctx.deps.step(ctx.tool_call_id, f"{action.capitalize()} {name}", "execute", given) as step:
        if name not in jobs:
            raise Trouble(f"There is no {name}; there are: {', '.join(jobs) or 'none'}")
        job = jobs[name]
        if action == "stop":
            await job.end()
        elif action == "wait":
            await job.wait(min(max(timeout, 1), LONGEST), step.show_text)
        state = "runs" if job.exit_code is None else f"ended with {job.exit_code}"
        return await step.end(f"{_tail(job)}\n[{name} {state}]".strip())


def _tail(job: Job) -> str:
    return shorten(job.output.rstrip("\n"), MAX_OUTPUT)
