"""The tools of the built-in agent."""

from pydantic_ai import Tool

from freehold.builtin.tool_context import ToolContext
from freehold.builtin.tools.commands import process, run
from freehold.builtin.tools.files import edit, list_folder, read, write
from freehold.builtin.tools.patches import apply_patch
from freehold.builtin.tools.plans import plan
from freehold.builtin.tools.skills import skill
from freehold.builtin.tools.text_search import search
from freehold.builtin.tools.web import fetch


def all_tools() -> list[Tool[ToolContext]]:
    """Tools that change something run one at a time, so that what the owner was shown is still true."""
    return [
        Tool(read),
        Tool(list_folder, name="list"),
        Tool(search),
        Tool(write, sequential=True),
        Tool(edit, sequential=True),
        Tool(apply_patch, sequential=True),
        Tool(run, sequential=True),
        Tool(process, sequential=True),
        Tool(plan),
        Tool(fetch),
        Tool(skill),
    ]
