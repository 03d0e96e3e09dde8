"""A gateway for which some known model providers are at addresses of the test. Their prices stay those of their own."""

import json
import os
from collections.abc import Mapping
from dataclasses import replace

VARIABLE = "TEST_PROVIDER_ADDRESSES"


def provider_environment(addresses: Mapping[str, str]) -> dict[str, str]:
    """The environment variable that carries the addresses, by the names of the providers."""
    return {VARIABLE: json.dumps(dict(addresses))}


def move_providers(addresses: Mapping[str, str]) -> None:
    """Before any other module takes the list of providers."""
    from freehold.egress.models import known_providers, prices

    own = {known.name: known.base_url for known in known_providers.KNOWN_PROVIDERS}
    known_providers.KNOWN_PROVIDERS = tuple(
        replace(known, base_url=addresses.get(known.name, known.base_url)) for known in known_providers.KNOWN_PROVIDERS
    )
    moved = {address: own[name] for name, address in addresses.items()}
    read_table = prices.Prices.__init__
    prices.Prices.__init__ = lambda self, address: read_table(self, moved.get(address) or address)  # type: ignore[method-assign]


def main() -> None:
    move_providers(json.loads(os.environ[VARIABLE]))
    from freehold.gateway import __main__

    __main__.main()


if __name__ == "__main__":
    main()
