"""run and process."""

from typing import Literal

from freehold.builtin.jobs import Job
from freehold.builtin.tool_call import ToolError, shorten
from freehold.builtin.tool_context import ToolContext

MAX_OUTPUT = 30_000
MAX_JOBS = 16
MAX_TIMEOUT = 3600


async def run(ctx: ToolContext, command: str, timeout: int = 120, background: bool = False) -> str:
    """Run a command with bash in the workspace. Returns its output and its exit code.

    Args:
        command: The command. It has no input: nobody can answer its questions.
        timeout: Seconds after which it is stopped.
        background: Leave it running (a server, a watcher) and continue at once. Use process to see it.
    """
    session = ctx.session
    given = {"command": command, "timeout": timeout, "background": background}
    async with ctx.start_call(command, "execute", given) as tool_call:
        if background and sum(job.exit_code is None for job in session.jobs.values()) >= MAX_JOBS:
            raise ToolError(f"{MAX_JOBS} commands are running in the background already; stop one with process")
        await tool_call.ask_permission()
        job = await Job.start(command, session.cwd)
        if background:
            name = f"job{len(session.jobs) + 1}"
            session.jobs[name] = job
            await job.wait(1.0)
            state = "is running in the background" if job.exit_code is None else f"ended with exit code {job.exit_code}"
            return await tool_call.end(f"{name} {state}\n{_tail(job)}".strip())
        try:
            ended = await job.wait(min(max(timeout, 1), MAX_TIMEOUT), tool_call.show_text)
        finally:
            if job.exit_code is None:
                await job.end()
        output = _tail(job)
        if not ended:
            words = f"{output}\n[stopped after {timeout} s; run it in the background or with a longer timeout]"
            return await tool_call.end(words, failed=True)
        words = f"{output}\n[exit code {job.exit_code}]" if job.exit_code or not output else output
        return await tool_call.end(words.strip(), failed=bool(job.exit_code))


async def process(ctx: ToolContext, name: str, action: Literal["status", "wait", "stop"], timeout: int = 30) -> str:
    """See, wait for or stop a command that runs in the background.

    Args:
        name: Its name, such as job1.
        action: What to do.
        timeout: Seconds to wait for its end at most.
    """
    jobs = ctx.session.jobs
    given = {"name": name, "action": action}
    async with ctx.start_call(f"{action.capitalize()} {name}", "execute", given) as tool_call:
        if name not in jobs:
            raise ToolError(f"There is no {name}. The background commands are: {', '.join(jobs) or 'none'}")
        job = jobs[name]
        if action == "stop":
            await job.end()
        elif action == "wait":
            await job.wait(min(max(timeout, 1), MAX_TIMEOUT), tool_call.show_text)
        state = "is running" if job.exit_code is None else f"ended with exit code {job.exit_code}"
        return await tool_call.end(f"{_tail(job)}\n[{name} {state}]".strip())


def _tail(job: Job) -> str:
    return shorten(job.output.rstrip("\n"), MAX_OUTPUT)
