import { createContext, useCallback, useContext, useMemo, type ReactNode } from "react";
import type { ApprovalView } from "../../client/api";
import { request, RequestFailed, type Problem } from "../../client/http";
import { useToasts } from "../../ui/Toasts";
import { useLiveRows } from "../shell/rows";
import { askOf, withApproval, type Ask, type Choice } from "./approvals.logic";

interface Approvals {
  asks: readonly Ask[];
  problem: Problem | null;
  answer: (ask: Ask, choice: Pick<Choice, "answer" | "note">) => Promise<void>;
}

const Context = createContext<Approvals | null>(null);

export function useApprovals(): Approvals {
  const approvals = useContext(Context);
  if (approvals === null) throw new Error("no ApprovalsProvider above");
  return approvals;
}

const read = (answer: unknown) => answer as ApprovalView[];

/** What agents ask, live, for the dock of a session and the bar on every page. */
export function ApprovalsProvider({ children }: { children: ReactNode }) {
  const { rows, problem, reload, take } = useLiveRows<ApprovalView>("/v1/approvals", "approvals", read, withApproval);
  const toasts = useToasts();
  const answer = useCallback(
    async (ask: Ask, { answer, note }: Pick<Choice, "answer" | "note">) => {
      try {
        take(await request<ApprovalView>(`/v1/approvals/${encodeURIComponent(ask.id)}`, { method: "POST", body: note === undefined ? { answer } : { answer, note } }));
      } catch (error) {
        const gone = error instanceof RequestFailed && (error.status === 409 || error.status === 404);
        if (gone) toasts.done("This was answered or withdrawn already");
        else toasts.failed(error);
        reload();
      }
    },
    [reload, take, toasts],
  );
  const approvals = useMemo<Approvals>(() => ({ asks: (rows ?? []).map(askOf), problem, answer }), [rows, problem, answer]);
  return <Context.Provider value={approvals}>{children}</Context.Provider>;
}
