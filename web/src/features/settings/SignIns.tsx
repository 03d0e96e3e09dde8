import type { EndedCount, SignInInfo } from "../../client/api";
import { request } from "../../client/http";
import { useResource } from "../../data/resource";
import { countOf, formatAge, secondsOf } from "../../ui/format";
import { Notice } from "../../ui/Notice";
import { useToasts } from "../../ui/Toasts";
import { useNow } from "../../ui/useNow";
import { browserName } from "./browserName.logic";

/** The signed-in browsers. Each can be signed out. */
export function SignIns({ onSignedOut }: { onSignedOut: () => void }) {
  const { value, problem, reload } = useResource<SignInInfo[]>("/v1/sign-ins");
  const toasts = useToasts();
  const now = useNow();

  async function end(path: string, message: (ended: number) => string, endsThisOne: boolean) {
    try {
      const { ended } = await request<EndedCount>(path, { method: "DELETE" });
      if (endsThisOne) return onSignedOut();
      toasts.done(message(ended));
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
          onClick={() =>
            void end("/v1/sign-ins?keep_current=true", (ended) => `${countOf(ended, "browser")} signed out`, false)
          }
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
              <span title={row.label}>{browserName(row.label)}</span>{" "}
              {row.current && (
                <span className="chip" data-tone="leaf">
                  this browser
                </span>
              )}
              <p className="quiet">
                {row.method} · {row.address} · active {formatAge(secondsOf(row.seen), now)}
              </p>
            </div>
            {!row.current && (
              <button
                className="small"
                onClick={() => void end(`/v1/sign-ins/${encodeURIComponent(row.id)}`, () => "Signed out", false)}
              >
                Sign out
              </button>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}
