"""What Prometheus is told of models. Labels are the owner's own words or come from the price table, never the agent's."""

from freehold.egress.models.ledger import Spell
from freehold.errors import FreeholdError
from freehold.observe.metrics import SECONDS, Registry, registry

UNLISTED = "other"
LONG = (*SECONDS, 60.0, 120.0, 300.0)


class Measures:
    def __init__(self, metrics: Registry = registry) -> None:
        by_model = ["provider", "model"]
        self._requests = metrics.counter(
            "freehold_model_requests_total",
            "Questions to models that are over, by how they ended.",
            [*by_model, "outcome"],
        )
        self._tokens = metrics.counter(
            "freehold_model_tokens_total", "Tokens in and out; cached ones are in `input`, too.", [*by_model, "kind"]
        )
        self._cost = metrics.counter(
            "freehold_model_cost_dollars_total", "US dollars, of questions whose price is known.", by_model
        )
        self._unpriced = metrics.counter(
            "freehold_model_unpriced_requests_total", "Questions whose price nobody knows.", ["provider"]
        )
        self._seconds = metrics.histogram(
            "freehold_model_request_seconds", "From a question to the end of its answer.", ["provider"], buckets=LONG
        )
        self._refusals = metrics.counter(
            "freehold_model_refusals_total", "Requests from inside that were sent to nobody.", ["provider", "code"]
        )

    def answered(self, spell: Spell, seconds: float, *, priced: bool) -> None:
        """A model that is not in the price table has a name that anybody may have made up."""
        labels = {"provider": spell.provider, "model": spell.model.lower() if priced else UNLISTED}
        self._requests.inc(1, **labels, outcome=spell.outcome)
        for kind in ("input", "output", "cached"):
            self._tokens.inc(getattr(spell.tokens, kind), **labels, kind=kind)
        if spell.cost is None:
            self._unpriced.inc(provider=spell.provider)
        else:
            self._cost.inc(spell.cost, **labels)
        self._seconds.observe(seconds, provider=spell.provider)

    def refused(self, provider: str, error: FreeholdError) -> None:
        """`provider` is empty for a request that named none of ours."""
        self._refusals.inc(provider=provider, code=error.code)
