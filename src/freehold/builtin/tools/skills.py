"""skill."""

from freehold.builtin.skills import find_skills
from freehold.builtin.tool_call import ToolError
from freehold.builtin.tool_context import ToolContext


async def skill(ctx: ToolContext, name: str) -> str:
    """Load the instructions of a skill that fits the task, before you start.

    Args:
        name: The name of the skill.
    """
    async with ctx.start_call(f"Skill {name}", "read", {"name": name}) as tool_call:
        skills = find_skills(ctx.session.cwd)
        if name not in skills:
            raise ToolError(f"There is no skill {name}. The skills are: {', '.join(skills) or 'none'}")
        chosen = skills[name]
        others = sorted(str(file) for file in chosen.folder.rglob("*") if file.is_file() and file.name != "SKILL.md")
        beside = "\n\nFiles of the skill:\n" + "\n".join(others[:100]) if others else ""
        await tool_call.end(f"{chosen.folder}/SKILL.md")
        return f"{chosen.text}{beside}"
