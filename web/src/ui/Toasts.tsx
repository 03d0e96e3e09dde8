import { createContext, useCallback, useContext, useMemo, useRef, useState, type ReactNode } from "react";
import { problemOf } from "../client/http";

interface Toast {
  id: number;
  text: string;
  hint: string;
  tone: "done" | "failed";
}

interface Toasts {
  done: (text: string) => void;
  failed: (error: unknown) => void;
  /** What the page itself does not take, in its own words. */
  refused: (text: string) => void;
}

const Context = createContext<Toasts>({ done: () => undefined, failed: () => undefined, refused: () => undefined });
const STAYS = 5_000;

export const useToasts = () => useContext(Context);

/** Short words about what was just done. What failed stays until it is put away. */
export function ToastProvider({ children }: { children: ReactNode }) {
  const [toasts, setToasts] = useState<Toast[]>([]);
  const next = useRef(1);
  const away = useCallback((id: number) => setToasts((all) => all.filter((toast) => toast.id !== id)), []);
  const show = useCallback(
    (toast: Omit<Toast, "id">) => {
      const id = next.current++;
      setToasts((all) => [...all.slice(-2), { ...toast, id }]);
      if (toast.tone === "done") setTimeout(() => away(id), STAYS);
    },
    [away],
  );
  const toasters = useMemo<Toasts>(
    () => ({
      done: (text) => show({ text, hint: "", tone: "done" }),
      failed: (error) => {
        const problem = problemOf(error);
        show({ text: problem.message, hint: problem.hint, tone: "failed" });
      },
      refused: (text) => show({ text, hint: "", tone: "failed" }),
    }),
    [show],
  );
  return (
    <Context.Provider value={toasters}>
      {children}
      <div className="toasts" role="status" aria-live="polite">
        {toasts.map((toast) => (
          <div key={toast.id} className="toast" data-tone={toast.tone}>
            <div>
              <strong>{toast.text}</strong>
              {toast.hint && <p>{toast.hint}</p>}
            </div>
            <button className="plain-button" onClick={() => away(toast.id)} aria-label="Put away">
              ×
            </button>
          </div>
        ))}
      </div>
    </Context.Provider>
  );
}
