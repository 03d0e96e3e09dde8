"""The settings of an external slot, with references to secrets resolved."""

from collections.abc import Callable, Mapping

from freehold.errors import FreeholdError
from freehold.manifest.secret_text import parse_reference
from freehold.observe.secrets import Secret
from freehold.slots.errors import SlotError
from freehold.slots.paired import PairedFreeholds

FindSecret = Callable[[str], Secret]
"""Finds a secret of the vault by its name."""


class ExternalSettings:
    """`[slots.NAME.settings]` of the manifest. Every setting must be asked for: an unknown one is refused."""

    def __init__(
        self,
        slot: str,
        values: Mapping[str, str],
        environ: Mapping[str, str],
        vault: FindSecret,
        paired: PairedFreeholds | None = None,
        *,
        where: str | None = None,
    ) -> None:
        """`where` they stand in the manifest, when it is not the table of a slot."""
        self.slot = slot
        self.where = where or f"slots.{slot}.settings"
        self._values = values
        self._environ = environ
        self._vault = vault
        self.paired = paired or PairedFreeholds()

    def require_known(self, *names: str) -> None:
        unknown = sorted(set(self._values) - set(names))
        if unknown:
            raise self.wrong(f"{self.where} has no {', '.join(unknown)}", f"It has: {', '.join(names)}")

    def find(self, name: str) -> str | None:
        """The value as it is written."""
        return self._values.get(name)

    def require(self, name: str) -> str:
        value = self._values.get(name)
        if not value:
            raise self.wrong(f"{self.where}.{name} is missing", f'Set {name} = "…" in [{self.where}]')
        return value

    def secret(self, name: str) -> Secret | None:
        """The secret that a reference names (`env:NAME`, `secret:name`); None when the setting is missing."""
        value = self._values.get(name)
        if value is None:
            return None
        reference = parse_reference(value)
        where = f"{self.where}.{name}"
        if reference is None:
            raise self.wrong(f"{where} is not a reference to a secret", f'{name} = "secret:NAME", or "env:NAME"')
        kind, target = reference
        if kind == "secret":
            try:
                return self._vault(target)
            except FreeholdError as error:
                raise self.wrong(f"{where}: {error.message}", error.next_step) from error
        if not self._environ.get(target):
            raise self.wrong(f"{where}: the variable {target} is not set", f"Set {target} where Freehold is started")
        return Secret(self._environ[target])

    def wrong(self, message: str, hint: str) -> SlotError:
        """What is told when the settings cannot be used. The slot stays unavailable until they are corrected."""
        return SlotError(self.slot, "unavailable", message, hint=hint)
