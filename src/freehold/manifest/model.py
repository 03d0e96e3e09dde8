"""`freehold.toml` as one frozen tree."""

from collections.abc import Mapping

from pydantic import Field

from freehold.manifest.sections.base import Section
from freehold.manifest.sections.computer import ComputerSection, Egress
from freehold.manifest.sections.door import Gateway, Keeper, Owner
from freehold.manifest.sections.durable import HistorySection, Mesh, Slots, Ssh
from freehold.manifest.sections.minds import Agents, Budget, Model
from freehold.manifest.sections.watch import Observe, Security


class Manifest(Section):
    """What the owner asked for. An empty one is right for a laptop."""

    owner: Owner = Field(default=Owner(), description="The one person let in.")
    gateway: Gateway = Field(default=Gateway(), description="The front door.")
    keeper: Keeper = Field(default=Keeper(), description="The process that never dies.")
    computer: ComputerSection = Field(default=ComputerSection(), description="The sealed machine the agent lives in.")
    egress: Egress = Field(default=Egress(), description="The only way out of the computer.")
    models: Mapping[str, Model] = Field(default={}, description="Providers of language models, by name.")
    budget: Budget = Field(default=Budget(), description="What may be spent on all models together.")
    agents: Agents = Field(default=Agents(), description="Who works here.")
    history: HistorySection = Field(default=HistorySection(), description="Every state of the persistent folders.")
    ssh: Ssh = Field(default=Ssh(), description="The side door.")
    slots: Slots = Field(default=Slots(), description="The five places for durable state.")
    mesh: Mesh = Field(default=Mesh(), description="The neighbours.")
    observe: Observe = Field(default=Observe(), description="Logs, metrics and traces.")
    security: Security = Field(default=Security(), description="What was knowingly loosened.")
