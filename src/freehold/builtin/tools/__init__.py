"""What the agent can do, one module a kind of thing."""

from pydantic_ai import Tool

from freehold.builtin.tools.files import edit, list_folder, read, write
from freehold.builtin.tools.patching import apply_patch
from freehold.builtin.tools.planning import plan
from freehold.builtin.tools.running import process, run
from freehold.builtin.tools.searching import search
from freehold.builtin.tools.skills import skill
from freehold.builtin.tools.web import fetch
from freehold.builtin.work import Work


def all_tools() -> list[Tool[Work]]:
    """Whatever changes something runs alone, so that what the owner was shown is what there is."""
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
