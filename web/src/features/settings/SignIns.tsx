import type { Ended, SignInRow } from "../../client/api";
import { request } from "../../client/http";
import { useAnswer, useNow } from "../../ui/answers";
import { ago } from "../../ui/moments";
import { Notice } from "../../ui/Notice";
import { useToasts } from "../../ui/Toasts";
import { browserOf } from "./signIns.logic";

const seconds = (at: string): number => new Date(at).getTime() / 1000;

/** Every browser that is signed in, and the way to end it. */
export function SignIns({ onSignedOut }: { onSignedOut: () => void }) {
  const { value, problem, reload } = useAnswer<SignInRow[]>("/v1/sign-ins");
  const toasts = useToasts();
  const now = useNow();

  async function end(path: string, said: (ended: number) => string, out: boolean) {
    try {
      const { ended } = await request<Ended>(path, { method: "DELETE" });
      if (out) return onSignedOut();
      toasts.done(said(ended));
      reload();
    } catch (error) {
      toasts.failed(error);
    }
  }

  return (
    <section aria-labelledby="sign-ins">
      <div className="section-head">
        <h3 id="sign-ins">Signed-in browsers</h3>
        <button
          className="small"
          disabled={(value?.length ?? 0) < 2}
          onClick={() => void end("/v1/sign-ins?keep_current=true", (ended) => `${ended} signed out`, false)}
        >
          Sign out all others
        </button>
        <button className="small danger" onClick={() => void end("/v1/sign-ins", () => "", true)}>
          Sign out everywhere
        </button>
      </div>
      {problem && <Notice problem={problem} action={{ label: "Try again", run: reload }} />}
      <ul className="rows">
        {value?.map((row) => (
          <li key={row.id}>
            <div className="grow">
              <span title={row.label}>{browserOf(row.label)}</span> {row.current && <span className="chip" data-tone="leaf">this one</span>}
              <p className="quiet">
                {row.method} · {row.address} · seen {ago(seconds(row.seen), now)}
              </p>
            </div>
            {!row.current && (
              <button className="small" onClick={() => void end(`/v1/sign-ins/${encodeURIComponent(row.id)}`, () => "Signed out", false)}>
                Sign out
              </button>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}
