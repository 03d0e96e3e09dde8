"""A scripted model for tests of agents: it does what the prompt says, and fails on demand."""

from freehold.testing.api_formats import ScriptedUsage
from freehold.testing.conversation import Api, Conversation, ConversationTurn, OfferedTool
from freehold.testing.script import Call, Fail, Say, Step, make_script
from freehold.testing.server import ReceivedRequest, ScriptedModel

__all__ = [
    "Api",
    "Call",
    "Conversation",
    "ConversationTurn",
    "Fail",
    "OfferedTool",
    "ReceivedRequest",
    "Say",
    "ScriptedModel",
    "ScriptedUsage",
    "Step",
    "make_script",
]
