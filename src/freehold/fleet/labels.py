"""Labels of nodes, such as `region=home`: computers choose nodes by them."""

import re
from collections.abc import Mapping

from freehold.errors import FreeholdError

LABEL = re.compile(r"[a-z][a-z0-9-]{0,30}")
LABEL_VALUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,60}")


def check_labels(labels: Mapping[str, str]) -> None:
    """Raises `fleet.bad-value`."""
    for name, value in labels.items():
        if not LABEL.fullmatch(name) or not LABEL_VALUE.fullmatch(value) or name.startswith("freehold"):
            raise FreeholdError(
                "fleet.bad-value",
                f"{name[:40]}={value[:40]} is not a label of a node",
                hint="Labels are written as region=home",
            )
