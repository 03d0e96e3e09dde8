"""`freehold.toml` as one frozen tree: the sections of the house, and those that features declare."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar

from pydantic import Field, create_model

from freehold.features import list_features, load_reference
from freehold.manifest.sections.agents import AgentsSection
from freehold.manifest.sections.base import Section
from freehold.manifest.sections.computer import ComputerSection
from freehold.manifest.sections.egress import EgressSection
from freehold.manifest.sections.gateway import GatewaySection
from freehold.manifest.sections.history import HistorySection
from freehold.manifest.sections.keeper import KeeperSection
from freehold.manifest.sections.models import BudgetSection, ModelSection
from freehold.manifest.sections.observe import ObserveSection
from freehold.manifest.sections.owner import OwnerSection
from freehold.manifest.sections.retention import RetentionSection
from freehold.manifest.sections.security import SecuritySection
from freehold.manifest.sections.slots import SlotsSection

S = TypeVar("S", bound=Section)


class HouseSections(Section):
    """The sections that every Freehold has. An empty manifest is right for a laptop."""

    owner: OwnerSection = Field(default=OwnerSection(), description="Who may sign in.")
    gateway: GatewaySection = Field(default=GatewaySection(), description="The control center and the API.")
    keeper: KeeperSection = Field(default=KeeperSection(), description="The recovery page.")
    computer: ComputerSection = Field(default=ComputerSection(), description="The sealed computer of the agents.")
    egress: EgressSection = Field(default=EgressSection(), description="Which hosts the computer may reach.")
    models: Mapping[str, ModelSection] = Field(default={}, description="Providers of language models, by name.")
    budget: BudgetSection = Field(default=BudgetSection(), description="What all models together may cost.")
    agents: AgentsSection = Field(default=AgentsSection(), description="The agents.")
    history: HistorySection = Field(default=HistorySection(), description="Every state of the persistent folders.")
    retention: RetentionSection = Field(
        default=RetentionSection(), description="What is kept in detail, and for how long."
    )
    slots: SlotsSection = Field(default=SlotsSection(), description="Five places for durable state beyond files.")
    observe: ObserveSection = Field(default=ObserveSection(), description="Logs, metrics and traces.")
    security: SecuritySection = Field(
        default=SecuritySection(), description="Protections that the owner has lowered on purpose."
    )

    def section(self, kind: type[S]) -> S:
        """The section of a feature, by its class."""
        for _, section in self.sections():
            if isinstance(section, kind):
                return section
        raise LookupError(f"no feature declares {kind.__name__}")

    def sections(self) -> Iterator[tuple[str, Section]]:
        """Every section that is a table, with its name."""
        for name in type(self).model_fields:
            value = getattr(self, name)
            if isinstance(value, Section):
                yield name, value


if TYPE_CHECKING:
    Manifest = HouseSections
else:
    _declared = [(feature, load_reference(feature.section)) for feature in list_features()]
    Manifest = create_model(
        "Manifest",
        __base__=HouseSections,
        __module__=__name__,
        __doc__="What the owner configured.",
        **{
            feature.name: (section, Field(default=section(), description=f"{feature.title}."))
            for feature, section in _declared
        },
    )
