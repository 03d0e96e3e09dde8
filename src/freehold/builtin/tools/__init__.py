"""The tools of the built-in agent."""

from freehold.builtin.tool import BuiltinTool, describe_function
from freehold.builtin.tools.commands import process, run
from freehold.builtin.tools.files import edit, list_folder, read, write
from freehold.builtin.tools.patches import apply_patch
from freehold.builtin.tools.plans import plan
from freehold.builtin.tools.skills import skill
from freehold.builtin.tools.text_search import search
from freehold.builtin.tools.web import fetch


def all_tools() -> list[BuiltinTool]:
    """Tools that change something run one at a time, so that what the owner was shown is still true."""
    return [
        describe_function(read),
        describe_function(list_folder, name="list"),
        describe_function(search),
        describe_function(write, sequential=True),
        describe_function(edit, sequential=True),
        describe_function(apply_patch, sequential=True),
        describe_function(run, sequential=True),
        describe_function(process, sequential=True),
        describe_function(plan),
        describe_function(fetch),
        describe_function(skill),
    ]
