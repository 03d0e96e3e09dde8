"""A tool as a server describes it."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class DescribedTool:
    """`digest` is over everything that an agent is told of it."""

    name: str
    description: str
    schema: dict[str, Any]

    @property
    def digest(self) -> str:
        text = json.dumps([self.name, self.description, self.schema], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()
