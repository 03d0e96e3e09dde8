import { useEffect, useState } from "react";
import type { SignedIn } from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";
import { storeKey } from "../../client/signInKey";
import { Logo } from "../../ui/Logo";
import { Notice } from "../../ui/Notice";
import {
  buttonLabel,
  otherOrigin,
  returnPath,
  type SignInOffer,
  type SignInState,
  tokenFromFragment,
} from "./signIn.logic";

/** Exchanges the token for the key of this browser. Returns the page to open. */
async function redeem(token: string): Promise<string> {
  // Remove the token from the address bar before anything else can read it.
  history.replaceState(null, "", location.pathname);
  const signedIn = await request<SignedIn>("/v1/sign-in/link", { method: "POST", body: { token } });
  storeKey(signedIn.key);
  return signedIn.return_to;
}

async function isSignedIn(): Promise<boolean> {
  try {
    await request("/v1/me");
    return true;
  } catch {
    return false;
  }
}

/** Signs this browser in with a one-time link or with an account. */
export function SignInPage({ onSignedIn }: { onSignedIn: (page?: string) => void }) {
  const [state, setState] = useState<SignInState>({ step: "loading" });

  useEffect(() => {
    let current = true;
    async function start() {
      const token = tokenFromFragment(location.hash);
      let problem: Problem | null = null;
      if (token !== null) {
        setState({ step: "redeeming" });
        try {
          const page = await redeem(token);
          if (current) onSignedIn(page);
          return;
        } catch (error) {
          problem = problemOf(error);
        }
        if (await isSignedIn()) {
          if (current) setState({ step: "already-signed-in", problem });
          return;
        }
      }
      try {
        const offer = await request<SignInOffer>("/v1/sign-in");
        if (!current) return;
        const origin = otherOrigin(offer, location.origin, returnPath(location));
        if (origin !== null) location.replace(origin);
        else setState({ step: "offer", offer, problem });
      } catch (error) {
        if (current) setState({ step: "failed", problem: problemOf(error) });
      }
    }
    void start();
    // Pasting a sign-in link into a tab that shows this page changes only the fragment.
    const onHashChange = () => {
      if (tokenFromFragment(location.hash) !== null) location.reload();
    };
    // Another tab may have signed this browser in meanwhile.
    const onFocus = () => {
      if (location.pathname === "/sign-in") return;
      request("/v1/me")
        .then(() => current && onSignedIn())
        .catch(() => undefined);
    };
    window.addEventListener("hashchange", onHashChange);
    window.addEventListener("focus", onFocus);
    return () => {
      current = false;
      window.removeEventListener("hashchange", onHashChange);
      window.removeEventListener("focus", onFocus);
    };
  }, [onSignedIn]);

  async function signInWithAtproto(offer: SignInOffer) {
    setState({ step: "leaving" });
    try {
      const body = { return_to: returnPath(location) };
      const { redirect } = await request<{ redirect: string }>("/v1/sign-in/atproto", { method: "POST", body });
      location.assign(redirect);
    } catch (error) {
      setState({ step: "offer", offer, problem: problemOf(error) });
    }
  }

  return (
    <main className="centered-page">
      <Logo size={56} />
      <h1>Freehold</h1>
      {state.step === "loading" && <p role="status">Loading…</p>}
      {state.step === "redeeming" && <p role="status">Signing this browser in…</p>}
      {state.step === "leaving" && <p role="status">Opening your account's server…</p>}
      {state.step === "failed" && (
        <Notice problem={state.problem} action={{ label: "Try again", run: () => location.reload() }} />
      )}
      {state.step === "already-signed-in" && (
        <>
          <Notice problem={{ ...state.problem, hint: "This browser is already signed in." }} />
          <button className="primary" onClick={() => onSignedIn()} autoFocus>
            Continue
          </button>
        </>
      )}
      {state.step === "offer" && (
        <>
          {state.problem && <Notice problem={state.problem} />}
          {state.offer.atproto && (
            <button className="primary" onClick={() => void signInWithAtproto(state.offer)}>
              {buttonLabel(state.offer)}
            </button>
          )}
          {state.offer.link && !state.problem && (
            <p className="quiet">
              This Freehold has no owner account yet. To sign this browser in, run <code>freehold open</code> on its
              machine and open the link that it prints.
            </p>
          )}
        </>
      )}
    </main>
  );
}
