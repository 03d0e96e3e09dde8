"""The settings of an external slot, with references to secrets resolved."""

from collections.abc import Callable, Mapping

from freehold.errors import FreeholdError
from freehold.manifest.secret_text import parse_reference
from freehold.observe.secrets import Secret
from freehold.slots.errors import SlotError

FindSecret = Callable[[str], Secret]
"""Finds a secret of the vault by its name."""


class ExternalSettings:
    """`[slots.NAME.settings]` of the manifest. Every setting must be asked for: an unknown one is refused."""

    def __init__(self, slot: str, values: Mapping[str, str], environ: Mapping[str, str], vault: FindSecret) -> None:
        self.slot = slot
        self._values = values
        self._environ = environ
        self._vault = vault

    def require_known(self, *names: str) -> None:
        unknown = sorted(set(self._values) - set(names))
        if unknown:
            raise self.wrong(f"slots.{self.slot}.settings has no {', '.join(unknown)}", f"It has: {', '.join(names)}")

    def find(self, name: str) -> str | None:
        """The value as it is written."""
        return self._values.get(name)

    def require(self, name: str) -> str:
        value = self._values.get(name)
        if not value:
            raise self.wrong(
                f"slots.{self.slot}.settings.{name} is missing", f'Set {name} = "…" in [slots.{self.slot}.settings]'
            )
        return value

    def secret(self, name: str) -> Secret | None:
        """The secret that a reference names (`env:NAME`, `secret:name`); None when the setting is missing."""
        value = self._values.get(name)
        if value is None:
            return None
        reference = parse_reference(value)
        where = f"slots.{self.slot}.settings.{name}"
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
