import { createContext, type ReactNode, useCallback, useContext, useMemo } from "react";
import type { ApprovalInfo } from "../../client/api";
import { type Problem, RequestFailed, request } from "../../client/http";
import { useResource } from "../../data/resource";
import { useToasts } from "../../ui/Toasts";
import { type AnswerChoice, type PermissionRequest, permissionRequestOf, withApproval } from "./approvals.logic";

interface Approvals {
  /** The permission requests that have no answer yet, oldest first. */
  requests: readonly PermissionRequest[];
  problem: Problem | null;
  answer: (permissionRequest: PermissionRequest, choice: Pick<AnswerChoice, "answer" | "note">) => Promise<void>;
}

const ApprovalsContext = createContext<Approvals | null>(null);

export function useApprovals(): Approvals {
  const approvals = useContext(ApprovalsContext);
  if (approvals === null) throw new Error("useApprovals needs an ApprovalsProvider");
  return approvals;
}

/** The open permission requests, kept up to date, for the open session and for the bar on every page. */
export function ApprovalsProvider({ children }: { children: ReactNode }) {
  const { value, problem, reload, receive } = useResource<readonly ApprovalInfo[]>("/v1/approvals", {
    topic: "approvals",
    apply: withApproval,
    isSecondary: true,
  });
  const toasts = useToasts();
  const answer = useCallback<Approvals["answer"]>(
    async ({ id, digest }, { answer, note }) => {
      const path = `/v1/approvals/${encodeURIComponent(id)}`;
      try {
        receive(
          await request<ApprovalInfo>(path, {
            method: "POST",
            body: { answer, ...(note !== undefined && { note }), ...(digest !== "" && { digest }) },
          }),
        );
      } catch (error) {
        const isGone = error instanceof RequestFailed && (error.status === 409 || error.status === 404);
        if (isGone) toasts.done("This request was already answered, withdrawn or changed");
        else toasts.failed(error);
        reload();
      }
    },
    [receive, reload, toasts],
  );
  const approvals = useMemo<Approvals>(
    () => ({ requests: (value ?? []).map(permissionRequestOf), problem, answer }),
    [value, problem, answer],
  );
  return <ApprovalsContext.Provider value={approvals}>{children}</ApprovalsContext.Provider>;
}
