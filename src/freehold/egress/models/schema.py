"""The tables of usage, budgets and the kill switch, one text for each step of their migration."""

SCHEMA = (
    """
    CREATE TABLE models_usage (
      id INTEGER PRIMARY KEY, at TEXT NOT NULL, provider TEXT NOT NULL, model TEXT NOT NULL, session TEXT NOT NULL,
      turn TEXT, input INTEGER NOT NULL, output INTEGER NOT NULL, cached INTEGER NOT NULL, written INTEGER NOT NULL,
      cost REAL, estimated INTEGER NOT NULL, outcome TEXT NOT NULL
    ) STRICT;
    CREATE INDEX models_usage_at ON models_usage (at);
    CREATE INDEX models_usage_session ON models_usage (session, turn);
    CREATE TABLE models_budget (
      scope TEXT PRIMARY KEY, day_cost REAL, month_cost REAL, day_tokens INTEGER, month_tokens INTEGER
    ) STRICT;
    CREATE TABLE models_mark (
      scope TEXT NOT NULL, what TEXT NOT NULL, period TEXT NOT NULL,
      state TEXT NOT NULL CHECK (state IN ('neared', 'reached', 'lifted')),
      PRIMARY KEY (scope, what, period, state)
    ) STRICT;
    CREATE TABLE models_stop (
      one INTEGER PRIMARY KEY CHECK (one = 1), at TEXT NOT NULL, who TEXT NOT NULL, why TEXT NOT NULL
    ) STRICT;
    """,
    # A row may stand for several requests (`usage_rollup`).
    "ALTER TABLE models_usage ADD COLUMN requests INTEGER NOT NULL DEFAULT 1",
    # How many of them count as the dearest of their provider.
    "ALTER TABLE models_usage ADD COLUMN assumed INTEGER NOT NULL DEFAULT 0",
    # The sums that reports read: a year of requests is few rows here. A roll-up changes none of them.
    """
    CREATE TABLE models_usage_day (
      day TEXT NOT NULL, provider TEXT NOT NULL, model TEXT NOT NULL, session TEXT NOT NULL, last INTEGER NOT NULL,
      requests INTEGER NOT NULL, input INTEGER NOT NULL, output INTEGER NOT NULL, cached INTEGER NOT NULL,
      written INTEGER NOT NULL, cost REAL NOT NULL, unpriced INTEGER NOT NULL, assumed INTEGER NOT NULL,
      estimated INTEGER NOT NULL, PRIMARY KEY (day, provider, model, session)
    ) STRICT, WITHOUT ROWID;
    INSERT INTO models_usage_day
      SELECT substr(at, 1, 10), provider, model, session, max(id), sum(requests), sum(input), sum(output), sum(cached),
        sum(written), coalesce(sum(cost), 0), sum((cost IS NULL) * requests), sum(assumed), sum(estimated)
      FROM models_usage GROUP BY 1, 2, 3, 4;
    CREATE TRIGGER models_usage_is_summed AFTER INSERT ON models_usage WHEN NEW.outcome != 'folded' BEGIN
      INSERT INTO models_usage_day VALUES (
        substr(NEW.at, 1, 10), NEW.provider, NEW.model, NEW.session, NEW.id, NEW.requests, NEW.input, NEW.output,
        NEW.cached, NEW.written, coalesce(NEW.cost, 0), (NEW.cost IS NULL) * NEW.requests, NEW.assumed, NEW.estimated
      ) ON CONFLICT DO UPDATE SET
        last = max(last, excluded.last), requests = requests + excluded.requests, input = input + excluded.input,
        output = output + excluded.output, cached = cached + excluded.cached, written = written + excluded.written,
        cost = cost + excluded.cost, unpriced = unpriced + excluded.unpriced, assumed = assumed + excluded.assumed,
        estimated = estimated + excluded.estimated;
    END;
    """,
    # Two more sums of the same: reports by day, model and session read no row for every session of every day.
    """
    CREATE TABLE models_usage_by_model (
      day TEXT NOT NULL, provider TEXT NOT NULL, model TEXT NOT NULL, last INTEGER NOT NULL,
      requests INTEGER NOT NULL, input INTEGER NOT NULL, output INTEGER NOT NULL, cached INTEGER NOT NULL,
      written INTEGER NOT NULL, cost REAL NOT NULL, unpriced INTEGER NOT NULL, assumed INTEGER NOT NULL,
      estimated INTEGER NOT NULL, PRIMARY KEY (day, provider, model)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE models_usage_by_session (
      session TEXT PRIMARY KEY, last INTEGER NOT NULL,
      requests INTEGER NOT NULL, input INTEGER NOT NULL, output INTEGER NOT NULL, cached INTEGER NOT NULL,
      written INTEGER NOT NULL, cost REAL NOT NULL, unpriced INTEGER NOT NULL, assumed INTEGER NOT NULL,
      estimated INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX models_usage_by_session_last ON models_usage_by_session (last);
    INSERT INTO models_usage_by_model
      SELECT day, provider, model, max(last), sum(requests), sum(input), sum(output), sum(cached), sum(written), sum(cost),
        sum(unpriced), sum(assumed), sum(estimated) FROM models_usage_day GROUP BY 1, 2, 3;
    INSERT INTO models_usage_by_session
      SELECT session, max(last), sum(requests), sum(input), sum(output), sum(cached), sum(written), sum(cost),
        sum(unpriced), sum(assumed), sum(estimated) FROM models_usage_day GROUP BY 1;
    CREATE TRIGGER models_usage_is_summed_twice AFTER INSERT ON models_usage WHEN NEW.outcome != 'folded' BEGIN
      INSERT INTO models_usage_by_model VALUES (
        substr(NEW.at, 1, 10), NEW.provider, NEW.model, NEW.id, NEW.requests, NEW.input, NEW.output, NEW.cached,
        NEW.written, coalesce(NEW.cost, 0), (NEW.cost IS NULL) * NEW.requests, NEW.assumed, NEW.estimated
      ) ON CONFLICT DO UPDATE SET
        last = max(last, excluded.last), requests = requests + excluded.requests, input = input + excluded.input,
        output = output + excluded.output, cached = cached + excluded.cached, written = written + excluded.written,
        cost = cost + excluded.cost, unpriced = unpriced + excluded.unpriced, assumed = assumed + excluded.assumed,
        estimated = estimated + excluded.estimated;
      INSERT INTO models_usage_by_session VALUES (
        NEW.session, NEW.id, NEW.requests, NEW.input, NEW.output, NEW.cached,
        NEW.written, coalesce(NEW.cost, 0), (NEW.cost IS NULL) * NEW.requests, NEW.assumed, NEW.estimated
      ) ON CONFLICT DO UPDATE SET
        last = max(last, excluded.last), requests = requests + excluded.requests, input = input + excluded.input,
        output = output + excluded.output, cached = cached + excluded.cached, written = written + excluded.written,
        cost = cost + excluded.cost, unpriced = unpriced + excluded.unpriced, assumed = assumed + excluded.assumed,
        estimated = estimated + excluded.estimated;
    END;
    """,
)
