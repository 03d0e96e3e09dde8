"""The metrics that a Freehold has, as its own endpoint tells them."""

import http.client
import re
from collections.abc import Mapping
from dataclasses import dataclass

from freehold.errors import FreeholdError

TIMEOUT = 10.0
MAX_BYTES = 8 << 20
_HELP = re.compile(r"# HELP (\S+) (.*)")
_TYPE = re.compile(r"# TYPE (\S+) (counter|gauge|histogram)")
_SAMPLE = re.compile(r"([a-z_][a-z0-9_]*?)(?:_bucket|_sum|_count)?(?:\{(.*)\})? \S+")
_LABEL = re.compile(r'([a-z_][a-z0-9_]*)="')


@dataclass(frozen=True)
class ScrapedMetric:
    """`labels` are those that its samples have now."""

    name: str
    kind: str
    help: str
    labels: tuple[str, ...]


def read_scrape(text: str) -> Mapping[str, ScrapedMetric]:
    """Every metric by its name, in the order of the text."""
    helps = {found[1]: found[2] for found in map(_HELP.fullmatch, text.splitlines()) if found}
    kinds = {found[1]: found[2] for found in map(_TYPE.fullmatch, text.splitlines()) if found}
    labels: dict[str, dict[str, None]] = {name: {} for name in kinds}
    for line in text.splitlines():
        name = next((one for one in _candidates(line) if one in kinds), None)
        if name is not None:
            found = _SAMPLE.fullmatch(line)
            for label in _LABEL.findall(found[2] or "") if found else ():
                labels[name].setdefault(label)
    return {
        name: ScrapedMetric(name, kind, helps.get(name, ""), tuple(one for one in labels[name] if one != "le"))
        for name, kind in kinds.items()
    }


def _candidates(line: str) -> list[str]:
    name = re.match(r"[a-z_][a-z0-9_]*", line)
    if name is None:
        return []
    return [name[0], *(name[0].removesuffix(end) for end in ("_bucket", "_sum", "_count"))]


def fetch_scrape(host: str, port: int) -> str:
    """Raises `deploy.unreachable` when no Freehold answers."""
    client = http.client.HTTPConnection(host, port, timeout=TIMEOUT)
    try:
        client.request("GET", "/metrics")
        answer = client.getresponse()
        text = answer.read(MAX_BYTES).decode()
    except (OSError, http.client.HTTPException, UnicodeDecodeError) as error:
        raise FreeholdError(
            "deploy.unreachable",
            f"No metrics are served at {host}:{port}: {error}",
            hint="freehold up -d, then try again: what is written depends on the metrics that exist",
        ) from error
    finally:
        client.close()
    if answer.status != 200 or "freehold_ready" not in text:
        raise FreeholdError("deploy.unreachable", f"Another program than Freehold answers at {host}:{port}")
    return text
