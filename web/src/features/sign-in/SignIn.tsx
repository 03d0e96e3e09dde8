import { useEffect, useState } from "react";
import { request, RequestFailed, type Problem } from "../../client/http";
import { Notice } from "../../ui/Notice";
import { buttonLabel, elsewhere, tokenFromFragment, wayBack, type SignInOffer, type SignInState } from "./signIn.logic";

function problemOf(error: unknown): Problem {
  if (error instanceof RequestFailed) return error.problem;
  return { code: "page.error", message: "This page failed.", hint: "Reload it." };
}

async function redeem(token: string): Promise<Problem | null> {
  // Out of the address bar before anything else can read it.
  history.replaceState(null, "", location.pathname);
  try {
    await request("/v1/sign-in/link", { method: "POST", body: { token } });
    return null;
  } catch (error) {
    return problemOf(error);
  }
}

async function isSignedIn(): Promise<boolean> {
  try {
    await request("/v1/me");
    return true;
  } catch {
    return false;
  }
}

export function SignIn({ onSignedIn }: { onSignedIn: () => void }) {
  const [state, setState] = useState<SignInState>({ step: "loading" });

  useEffect(() => {
    let current = true;
    async function begin() {
      const token = tokenFromFragment(location.hash);
      let problem: Problem | null = null;
      if (token !== null) {
        setState({ step: "redeeming" });
        problem = await redeem(token);
        if (problem === null) {
          if (current) onSignedIn();
          return;
        }
        if (await isSignedIn()) {
          if (current) setState({ step: "inside", problem });
          return;
        }
      }
      try {
        const offer = await request<SignInOffer>("/v1/sign-in");
        if (!current) return;
        const other = elsewhere(offer, location.origin, wayBack(location));
        if (other !== null) location.replace(other);
        else setState({ step: "offer", offer, problem });
      } catch (error) {
        if (current) setState({ step: "failed", problem: problemOf(error) });
      }
    }
    void begin();
    // A link pasted into a tab that shows this page changes only the fragment.
    const pasted = () => {
      if (tokenFromFragment(location.hash) !== null) location.reload();
    };
    // Signed in by a link in another tab meanwhile: this one goes on where it was.
    const returned = () => {
      if (location.pathname === "/sign-in") return;
      request("/v1/me")
        .then(() => current && onSignedIn())
        .catch(() => undefined);
    };
    window.addEventListener("hashchange", pasted);
    window.addEventListener("focus", returned);
    return () => {
      current = false;
      window.removeEventListener("hashchange", pasted);
      window.removeEventListener("focus", returned);
    };
  }, [onSignedIn]);

  async function signInWithAtproto(offer: SignInOffer) {
    setState({ step: "leaving" });
    try {
      const body = { way: wayBack(location) };
      const { redirect } = await request<{ redirect: string }>("/v1/sign-in/atproto", { method: "POST", body });
      location.assign(redirect);
    } catch (error) {
      setState({ step: "offer", offer, problem: problemOf(error) });
    }
  }

  return (
    <main className="door">
      <img src="/icon.svg" alt="" width="56" height="56" />
      <h1>Freehold</h1>
      {state.step === "loading" && <p role="status">One moment…</p>}
      {state.step === "redeeming" && <p role="status">Signing this browser in…</p>}
      {state.step === "leaving" && <p role="status">Going to your account's server…</p>}
      {state.step === "failed" && <Notice problem={state.problem} action={{ label: "Try again", run: () => location.reload() }} />}
      {state.step === "inside" && (
        <>
          <Notice problem={{ ...state.problem, hint: "This browser is signed in already" }} />
          <button className="primary" onClick={onSignedIn} autoFocus>
            Go on
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
              This Freehold has no owner account yet. On the machine it runs on, type <code>freehold open</code> for a link
              that signs this browser in.
            </p>
          )}
        </>
      )}
    </main>
  );
}
