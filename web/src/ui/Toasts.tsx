import { createContext, type ReactNode, useCallback, useContext, useMemo, useRef, useState } from "react";
import { type Problem, problemOf } from "../client/http";
import { AboutError } from "./AboutError";

interface Toast {
  id: number;
  text: string;
  tone: "done" | "failed";
  /** Of a failure that the gateway told. */
  problem?: Problem;
}

interface Toasts {
  done: (text: string) => void;
  failed: (error: unknown) => void;
  /** For an input that the page refuses itself. */
  refused: (text: string) => void;
}

const ToastsContext = createContext<Toasts>({
  done: () => undefined,
  failed: () => undefined,
  refused: () => undefined,
});
const SHOWN_FOR = 5_000;

export const useToasts = () => useContext(ToastsContext);

/** Short messages about the last actions. A failure stays until it is dismissed. */
export function ToastProvider({ children }: { children: ReactNode }) {
  const [toasts, setToasts] = useState<Toast[]>([]);
  const next = useRef(1);
  const dismiss = useCallback((id: number) => setToasts((all) => all.filter((toast) => toast.id !== id)), []);
  const show = useCallback(
    (toast: Omit<Toast, "id">) => {
      const id = next.current++;
      setToasts((all) => [...all.slice(-2), { ...toast, id }]);
      if (toast.tone === "done") setTimeout(() => dismiss(id), SHOWN_FOR);
    },
    [dismiss],
  );
  const value = useMemo<Toasts>(
    () => ({
      done: (text) => show({ text, tone: "done" }),
      failed: (error) => {
        const problem = problemOf(error);
        show({ text: problem.message, tone: "failed", problem });
      },
      refused: (text) => show({ text, tone: "failed" }),
    }),
    [show],
  );
  return (
    <ToastsContext.Provider value={value}>
      {children}
      <div className="toasts" role="status" aria-live="polite">
        {toasts.map((toast) => (
          <div key={toast.id} className="toast" data-tone={toast.tone}>
            <div>
              <strong>{toast.text}</strong>
              {toast.problem?.hint && <p>{toast.problem.hint}</p>}
              {toast.problem?.error_id && <p>Error {toast.problem.error_id}</p>}
              {toast.problem && <AboutError code={toast.problem.code} />}
            </div>
            <button className="plain-button" type="button" onClick={() => dismiss(toast.id)} aria-label="Dismiss">
              ×
            </button>
          </div>
        ))}
      </div>
    </ToastsContext.Provider>
  );
}
