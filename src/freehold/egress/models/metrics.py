"""Prometheus metrics of models. Labels come from the manifest or the price table, never from an agent."""

from freehold.egress.models.ledger import UsageRecord
from freehold.errors import FreeholdError
from freehold.observe.metrics import SECONDS_BUCKETS, MetricsRegistry, registry

UNLISTED = "other"
REQUEST_SECONDS = (*SECONDS_BUCKETS, 60.0, 120.0, 300.0)


class ModelMetrics:
    """Counts requests, tokens, cost and refusals."""

    def __init__(self, metrics: MetricsRegistry = registry) -> None:
        by_model = ["provider", "model"]
        self._requests = metrics.counter(
            "freehold_model_requests_total",
            "Finished model requests by outcome.",
            [*by_model, "outcome"],
        )
        self._tokens = metrics.counter(
            "freehold_model_tokens_total", "Tokens in and out; `input` includes cached ones.", [*by_model, "kind"]
        )
        self._cost = metrics.counter(
            "freehold_model_cost_dollars_total", "US dollars, as far as prices are known or assumed.", by_model
        )
        self._unpriced = metrics.counter(
            "freehold_model_unpriced_requests_total", "Requests whose price is not in the table.", ["provider"]
        )
        self._seconds = metrics.histogram(
            "freehold_model_request_seconds",
            "From a request to the end of its response.",
            ["provider"],
            buckets=REQUEST_SECONDS,
        )
        self._refusals = metrics.counter(
            "freehold_model_refusals_total", "Requests from inside that were refused.", ["provider", "code"]
        )

    def answered(self, record: UsageRecord, seconds: float, *, priced: bool) -> None:
        """A model that is not in the price table is labelled `other`: an agent may have invented its name."""
        labels = {"provider": record.provider, "model": record.model.lower() if priced else UNLISTED}
        self._requests.inc(1, **labels, outcome=record.outcome)
        for kind in ("input", "output", "cached"):
            self._tokens.inc(getattr(record.tokens, kind), **labels, kind=kind)
        if record.cost is None or record.assumed:
            self._unpriced.inc(provider=record.provider)
        if record.cost is not None:
            self._cost.inc(record.cost, **labels)
        self._seconds.observe(seconds, provider=record.provider)

    def refused(self, provider: str, error: FreeholdError) -> None:
        """`provider` is empty for a request that named no known provider."""
        self._refusals.inc(provider=provider, code=error.code)
