import { type FormEvent, useState } from "react";
import { type Problem, problemOf, request } from "../../client/http";
import { Logo } from "../../ui/Logo";
import { Notice } from "../../ui/Notice";
import { parseCode, scopeText, type WaitingDevice } from "./device.logic";

type State =
  | { step: "code"; problem: Problem | null }
  | { step: "question"; device: WaitingDevice; problem: Problem | null }
  | { step: "answered"; allowed: boolean; name: string };

/** Lets the owner allow or refuse a program that asks for an API token (`freehold login`). */
export function DevicePage() {
  const [text, setText] = useState(() => parseCode(location.hash) ?? "");
  const [state, setState] = useState<State>({ step: "code", problem: null });

  async function find(event: FormEvent) {
    event.preventDefault();
    const code = parseCode(text);
    if (code === null) {
      const problem = {
        code: "device.code",
        message: "A code has eight letters.",
        hint: "Look it up in the terminal where you ran freehold login.",
      };
      setState({ step: "code", problem });
      return;
    }
    try {
      setState({ step: "question", device: await request<WaitingDevice>(`/v1/devices/${code}`), problem: null });
    } catch (error) {
      setState({ step: "code", problem: problemOf(error) });
    }
  }

  async function answer(device: WaitingDevice, allow: boolean) {
    try {
      await request(`/v1/devices/${device.code}`, { method: "POST", body: { allow } });
      setState({ step: "answered", allowed: allow, name: device.name });
    } catch (error) {
      setState({ step: "question", device, problem: problemOf(error) });
    }
  }

  return (
    <main className="centered-page">
      <Logo size={56} />
      {state.step === "code" && (
        <form className="centered-form" onSubmit={(event) => void find(event)}>
          <h1>A program asks for access</h1>
          <p className="quiet">
            Continue only if you have just run <code>freehold login</code> and its terminal shows this code.
          </p>
          {state.problem && <Notice problem={state.problem} />}
          <label>
            Code
            <input
              value={text}
              onChange={(event) => setText(event.target.value)}
              autoComplete="off"
              spellCheck={false}
            />
          </label>
          <button className="primary">Continue</button>
        </form>
      )}
      {state.step === "question" && (
        <>
          <h1>Allow “{state.device.name}”?</h1>
          <p>It asks from {state.device.address}. For 90 days, or until you revoke its token, it can:</p>
          <ul className="centered-list">
            {state.device.scopes.map((scope) => (
              <li key={scope}>{scopeText(scope)}</li>
            ))}
          </ul>
          {state.problem && <Notice problem={state.problem} />}
          <div className="centered-row">
            <button className="primary" onClick={() => void answer(state.device, true)}>
              Allow
            </button>
            <button onClick={() => void answer(state.device, false)}>Refuse</button>
          </div>
        </>
      )}
      {state.step === "answered" && (
        <>
          <h1>{state.allowed ? "Done" : "Refused"}</h1>
          <p role="status">
            {state.allowed
              ? `“${state.name}” has an API token now. You can close this page.`
              : `“${state.name}” got no access.`}
          </p>
          <p>
            <a href="/">Open your Freehold</a>
          </p>
        </>
      )}
    </main>
  );
}
