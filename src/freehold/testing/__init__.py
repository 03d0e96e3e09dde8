"""What tests of agents need and no machine has: a model that does what the prompt says, and fails when asked to."""

from freehold.testing.conversation import Api, Conversation, Tool, Turn
from freehold.testing.script import Call, Fail, Say, Step, play
from freehold.testing.server import Received, ScriptedModel
from freehold.testing.wires import Usage

__all__ = [
    "Api",
    "Call",
    "Conversation",
    "Fail",
    "Received",
    "Say",
    "ScriptedModel",
    "Step",
    "Tool",
    "Turn",
    "Usage",
    "play",
]
