import { useEffect, useMemo, useState, type FormEvent } from "react";
import type { BudgetRow, BudgetsState, ModelsState, UsageReport } from "../../client/api";
import { problemOf, request, type Problem } from "../../client/http";
import { useAnswer, useNow } from "../../ui/answers";
import { Dialog } from "../../ui/Dialog";
import { Notice } from "../../ui/Notice";
import { useToasts } from "../../ui/Toasts";
import { TwoPress } from "../../ui/TwoPress";
import { useTopic } from "../shell/live";
import { ALL, draftOf, LABELS, LIMITS, readDraft, scopeWords, standingOf, type Draft } from "./budgets.logic";
import { UsageChart } from "./UsageChart";
import "./models.css";
import { daysUntil } from "./usage.logic";

const DAYS = 30;
/** Questions come in flocks; the numbers need not run with each of them. */
const SETTLE = 1_500;

/** What was used, and what may be. */
export function BudgetsSection() {
  const today = new Date(useNow() * 1000).toISOString().slice(0, 10);
  const days = useMemo(() => daysUntil(new Date(`${today}T12:00:00Z`), DAYS), [today]);
  const usage = useAnswer<UsageReport>(`/v1/usage?by=day_model&limit=1000&since=${days[0] ?? today}`);
  const budgets = useAnswer<BudgetsState>("/v1/budgets");
  const [setting, setSetting] = useState(false);
  const [heard, setHeard] = useState(0);
  const toasts = useToasts();
  const { reload: reloadUsage } = usage;
  const { reload: reloadBudgets } = budgets;
  useTopic(
    "timeline",
    {
      event: (data) => {
        if (String((data as { kind?: unknown }).kind).startsWith("models.")) setHeard((count) => count + 1);
      },
      resync: () => setHeard((count) => count + 1),
    },
    { durable: true },
  );
  useEffect(() => {
    if (heard === 0) return;
    const timer = setTimeout(() => {
      reloadUsage();
      reloadBudgets();
    }, SETTLE);
    return () => clearTimeout(timer);
  }, [heard, reloadUsage, reloadBudgets]);

  async function lift(row: BudgetRow) {
    try {
      budgets.put(await request<BudgetsState>("/v1/budgets/lift", { method: "POST", body: { scope: row.scope, limit: row.limit } }));
      toasts.done("Lifted until its day or month is over");
    } catch (error) {
      toasts.failed(error);
    }
  }

  return (
    <>
      <section aria-labelledby="limits">
        <div className="section-head">
          <h3 id="limits">Limits</h3>
          <button className="small" disabled={budgets.value === null} onClick={() => setSetting(true)}>
            Set limits
          </button>
        </div>
        {budgets.problem && <Notice problem={budgets.problem} action={{ label: "Try again", run: reloadBudgets }} />}
        {budgets.value?.budgets.length === 0 && <p className="empty">No limit is set: models may be asked without bound.</p>}
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
        {usage.problem && <Notice problem={usage.problem} action={{ label: "Try again", run: reloadUsage }} />}
        {usage.value?.rows.length === 0 && <p className="empty">No model was asked in these days.</p>}
        {usage.value && usage.value.rows.length > 0 && (
          <div className="card">
            <UsageChart rows={usage.value.rows} days={days} />
          </div>
        )}
      </section>
      {setting && budgets.value && (
        <SetLimits
          rows={budgets.value.budgets}
          onClose={() => setSetting(false)}
          onSet={(state) => {
            budgets.put(state);
            setSetting(false);
            toasts.done("In force from now on");
          }}
        />
      )}
    </>
  );
}

function Budget({ row, onLift }: { row: BudgetRow; onLift: () => void }) {
  const standing = standingOf(row);
  return (
    <li className="budget" data-tone={standing.tone} data-budget={`${row.scope} ${row.limit}`}>
      <div className="grow">
        <p className="row-title">
          <strong>{scopeWords(row.scope)}</strong> <span className="quiet">{LABELS[row.limit].toLowerCase()}</span>
        </p>
        <meter min={0} max={1} high={0.8} value={standing.share} aria-label={`${scopeWords(row.scope)}, ${LABELS[row.limit].toLowerCase()}: used`} />
        <p className="quiet">{standing.words}</p>
        {standing.note && <p className={standing.tone === "alarm" || standing.tone === "amber" ? "trouble" : "quiet"}>{standing.note}</p>}
      </div>
      {standing.canLift && <TwoPress label="Lift" sure="Go on without this limit" name={`Lift ${LABELS[row.limit].toLowerCase()} of ${scopeWords(row.scope)}`} onSure={onLift} />}
    </li>
  );
}

function SetLimits({ rows, onClose, onSet }: { rows: readonly BudgetRow[]; onClose: () => void; onSet: (state: BudgetsState) => void }) {
  const models = useAnswer<ModelsState>("/v1/models");
  const [scope, setScope] = useState(ALL);
  const [draft, setDraft] = useState<Draft>(() => draftOf(rows, ALL));
  const [problem, setProblem] = useState<Problem | null>(null);
  const scopes = [ALL, ...(models.value?.models.map((model) => model.name) ?? [])];

  async function save(event: FormEvent) {
    event.preventDefault();
    const body = readDraft(scope, draft);
    if (typeof body === "string") return setProblem({ code: "", message: body, hint: "" });
    try {
      onSet(await request<BudgetsState>("/v1/budgets", { method: "PUT", body }));
    } catch (error) {
      setProblem(problemOf(error));
    }
  }

  return (
    <Dialog title="Limits" onClose={onClose}>
      <form className="stack" onSubmit={(event) => void save(event)}>
        {problem && <Notice problem={problem} />}
        <label>
          Of
          <select
            value={scope}
            onChange={(event) => {
              setScope(event.target.value);
              setDraft(draftOf(rows, event.target.value));
            }}
          >
            {scopes.map((one) => (
              <option key={one} value={one}>
                {scopeWords(one)}
              </option>
            ))}
          </select>
        </label>
        <div className="two-columns">
          {LIMITS.map((limit) => (
            <label key={limit}>
              {LABELS[limit]}
              <input
                inputMode={limit.endsWith("cost") ? "decimal" : "numeric"}
                placeholder="no bound"
                value={draft[limit]}
                onChange={(event) => setDraft({ ...draft, [limit]: event.target.value })}
                autoComplete="off"
              />
            </label>
          ))}
        </div>
        <p className="quiet small-print">These stand in place of freehold.toml’s. With none at all, freehold.toml’s count again.</p>
        <div className="dialog-foot">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button className="primary">Set</button>
        </div>
      </form>
    </Dialog>
  );
}
