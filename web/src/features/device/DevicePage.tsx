import { useState, type FormEvent } from "react";
import { request, RequestFailed, type Problem } from "../../client/http";
import { Notice } from "../../ui/Notice";
import { codeFrom, meaningOf, type WaitingDevice } from "./device.logic";

type State =
  | { step: "code"; problem: Problem | null }
  | { step: "question"; device: WaitingDevice; problem: Problem | null }
  | { step: "answered"; allowed: boolean; name: string };

function problemOf(error: unknown): Problem | null {
  return error instanceof RequestFailed ? error.problem : null;
}

export function DevicePage() {
  const [text, setText] = useState(() => codeFrom(location.hash) ?? "");
  const [state, setState] = useState<State>({ step: "code", problem: null });

  async function look(event: FormEvent) {
    event.preventDefault();
    const code = codeFrom(text);
    if (code === null) {
      const problem = { code: "device.code", message: "A code has eight letters.", hint: "It is in the terminal that waits." };
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
    <main className="door">
      <img src="/icon.svg" alt="" width="56" height="56" />
      {state.step === "code" && (
        <form className="door-form" onSubmit={(event) => void look(event)}>
          <h1>A program asks for access</h1>
          <p className="quiet">Only go on if you have just typed <code>freehold login</code> and its terminal shows this code.</p>
          {state.problem && <Notice problem={state.problem} />}
          <label>
            Code
            <input value={text} onChange={(event) => setText(event.target.value)} autoComplete="off" spellCheck={false} />
          </label>
          <button className="primary">Continue</button>
        </form>
      )}
      {state.step === "question" && (
        <>
          <h1>Let “{state.device.name}” in?</h1>
          <p>It asks from {state.device.address}. Until you end it, or for 90 days, it could:</p>
          <ul className="plain">
            {state.device.scopes.map((scope) => (
              <li key={scope}>{meaningOf(scope)}</li>
            ))}
          </ul>
          {state.problem && <Notice problem={state.problem} />}
          <div className="row">
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
            {state.allowed ? `“${state.name}” has its token. You can close this page.` : `“${state.name}” gets nothing.`}
          </p>
          <p>
            <a href="/">Go to your Freehold</a>
          </p>
        </>
      )}
    </main>
  );
}
