"""skill."""

from pydantic_ai import RunContext

from freehold.builtin.skilled import find_skills
from freehold.builtin.step import Trouble
from freehold.builtin.work import Work


async def skill(ctx: RunContext[Work], name: str) -> str:
    """Load the instructions of a skill that fits the task, before you begin with it.

    Args:
        name: The name of the skill.
    """
    async with ctx.deps.step(ctx.tool_call_id, f"Skill {name}", "read", {"name": name}) as step:
        skills = find_skills(ctx.deps.session.cwd)
        if name not in skills:
            raise Trouble(f"There is no skill {name}; there are: {', '.join(skills) or 'none'}")
        chosen = skills[name]
        others = sorted(str(file) for file in chosen.folder.rglob("*") if file.is_file() and file.name != "SKILL.md")
        beside = "\n\nFiles that come with it:\n" + "\n".join(others[:100]) if others else ""
        await step.end(f"{chosen.folder}/SKILL.md")
        return f"{chosen.text}{beside}"
