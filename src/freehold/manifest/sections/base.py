"""What all sections of the manifest share."""

from dataclasses import dataclass
from typing import ClassVar

from pydantic import BaseModel, ConfigDict


@dataclass(frozen=True)
class ListenAddress:
    """An address on which a program listens, with the keys of its section that set it."""

    host_key: str
    port_key: str
    host: str
    port: int


class Section(BaseModel):
    """Frozen. Refuses unknown keys and values of another type."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, hide_input_in_errors=True)

    named_tables: ClassVar["type[Section] | None"] = None
    """The tables with names of the owner's choice that stand beside its fixed keys, such as `[agents.<name>]`."""
    named_example: ClassVar[str] = ""
    """Such a name, for an example."""

    def listen_addresses(self) -> tuple[ListenAddress, ...]:
        """Where programs of this section listen; checked for collisions and for public addresses without an owner."""
        return ()
