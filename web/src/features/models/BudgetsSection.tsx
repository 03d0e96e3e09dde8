import { type FormEvent, useMemo, useState } from "react";
import type { BudgetState, BudgetsState, ModelsState, UsageReport } from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";
import { hasKind, useResource } from "../../data/resource";
import { ConfirmButton } from "../../ui/ConfirmButton";
import { Dialog } from "../../ui/Dialog";
import { Notice } from "../../ui/Notice";
import { useToasts } from "../../ui/Toasts";
import { useNow } from "../../ui/useNow";
import { ALL, budgetStatus, type Draft, draftOf, LABELS, LIMITS, parseDraft, scopeText } from "./budgets.logic";
import { UsageChart } from "./UsageChart";
import "./models.css";
import { daysUntil } from "./usage.logic";

const DAYS = 30;
/** Model requests come in bursts. The numbers are fetched when a burst is over. */
const EVENT_DELAY = 1_500;

/** The limits of model usage, and the usage of the last days. */
export function BudgetsSection() {
  const today = new Date(useNow() * 1000).toISOString().slice(0, 10);
  const days = useMemo(() => daysUntil(new Date(`${today}T12:00:00Z`), DAYS), [today]);
  const options = {
    topic: "timeline",
    durable: true,
    concerns: (event: unknown) => hasKind(event, "models."),
    delay: EVENT_DELAY,
  };
  const usage = useResource<UsageReport>(`/v1/usage?by=day_model&limit=1000&since=${days[0] ?? today}`, options);
  const budgets = useResource<BudgetsState>("/v1/budgets", options);
  const [isSetting, setIsSetting] = useState(false);
  const toasts = useToasts();

  async function lift(row: BudgetState) {
    try {
      budgets.set(
        await request<BudgetsState>("/v1/budgets/lift", {
          method: "POST",
          body: { scope: row.scope, limit: row.limit },
        }),
      );
      toasts.done("The limit is lifted until the end of its period");
    } catch (error) {
      toasts.failed(error);
    }
  }

  return (
    <>
      <section aria-labelledby="limits">
        <div className="section-head">
          <h3 id="limits">Limits</h3>
          <button className="small" disabled={budgets.value === null} onClick={() => setIsSetting(true)}>
            Set limits
          </button>
        </div>
        {budgets.problem && <Notice problem={budgets.problem} action={{ label: "Try again", run: budgets.reload }} />}
        {budgets.value?.budgets.length === 0 && (
          <p className="empty">No limits. Agents can use models without a limit.</p>
        )}
        {budgets.value && budgets.value.budgets.length > 0 && (
          <ul className="rows">
            {budgets.value.budgets.map((row) => (
              <Budget key={`${row.scope} ${row.limit}`} row={row} onLift={() => void lift(row)} />
            ))}
          </ul>
        )}
      </section>
      <section aria-labelledby="used">
        <h3 id="used">The last {DAYS} days</h3>
        {usage.problem && <Notice problem={usage.problem} action={{ label: "Try again", run: usage.reload }} />}
        {usage.value?.rows.length === 0 && <p className="empty">No model was used in these days.</p>}
        {usage.value && usage.value.rows.length > 0 && (
          <div className="card">
            <UsageChart rows={usage.value.rows} days={days} />
          </div>
        )}
      </section>
      {isSetting && budgets.value && (
        <LimitsDialog
          rows={budgets.value.budgets}
          onClose={() => setIsSetting(false)}
          onSet={(state) => {
            budgets.set(state);
            setIsSetting(false);
            toasts.done("The limits are set");
          }}
        />
      )}
    </>
  );
}

function Budget({ row, onLift }: { row: BudgetState; onLift: () => void }) {
  const status = budgetStatus(row);
  return (
    <li className="wrapping-row models-budget" data-tone={status.tone} data-budget={`${row.scope} ${row.limit}`}>
      <div className="grow">
        <p className="row-title">
          <strong>{scopeText(row.scope)}</strong> <span className="quiet">{LABELS[row.limit].toLowerCase()}</span>
        </p>
        <meter
          min={0}
          max={1}
          high={0.8}
          value={status.share}
          aria-label={`${scopeText(row.scope)}, ${LABELS[row.limit].toLowerCase()}: used`}
        />
        <p className="quiet">{status.text}</p>
        {status.note && (
          <p className={status.tone === "alarm" || status.tone === "amber" ? "problem-text" : "quiet"}>{status.note}</p>
        )}
      </div>
      {status.canLift && (
        <ConfirmButton
          label="Lift limit"
          confirmLabel="Press again to lift the limit"
          spoken={`Lift ${LABELS[row.limit].toLowerCase()} of ${scopeText(row.scope)}`}
          onConfirm={onLift}
        />
      )}
    </li>
  );
}

function LimitsDialog({
  rows,
  onClose,
  onSet,
}: {
  rows: readonly BudgetState[];
  onClose: () => void;
  onSet: (state: BudgetsState) => void;
}) {
  const models = useResource<ModelsState>("/v1/models");
  const [scope, setScope] = useState(ALL);
  const [draft, setDraft] = useState<Draft>(() => draftOf(rows, ALL));
  const [problem, setProblem] = useState<Problem | null>(null);
  const scopes = [ALL, ...(models.value?.models.map((model) => model.name) ?? [])];

  async function save(event: FormEvent) {
    event.preventDefault();
    const body = parseDraft(scope, draft);
    if (typeof body === "string") return setProblem({ code: "", message: body, hint: "" });
    try {
      onSet(await request<BudgetsState>("/v1/budgets", { method: "PUT", body }));
    } catch (error) {
      setProblem(problemOf(error));
    }
  }

  return (
    <Dialog title="Set limits" onClose={onClose}>
      <form className="stack" onSubmit={(event) => void save(event)}>
        {problem && <Notice problem={problem} />}
        <label>
          Applies to
          <select
            value={scope}
            onChange={(event) => {
              setScope(event.target.value);
              setDraft(draftOf(rows, event.target.value));
            }}
          >
            {scopes.map((one) => (
              <option key={one} value={one}>
                {scopeText(one)}
              </option>
            ))}
          </select>
        </label>
        <div className="models-limits">
          {LIMITS.map((limit) => (
            <label key={limit}>
              {LABELS[limit]}
              <input
                inputMode={limit.endsWith("cost") ? "decimal" : "numeric"}
                placeholder="no limit"
                value={draft[limit]}
                onChange={(event) => setDraft({ ...draft, [limit]: event.target.value })}
                autoComplete="off"
              />
            </label>
          ))}
        </div>
        <p className="quiet small-print">
          These limits replace those of freehold.toml. If all fields are empty, those of freehold.toml apply again.
        </p>
        <div className="dialog-foot">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button className="primary">Set limits</button>
        </div>
      </form>
    </Dialog>
  );
}
