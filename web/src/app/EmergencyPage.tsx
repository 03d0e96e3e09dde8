import { useState } from "react";
import { problemOf, request } from "../client/http";
import { ConfirmButton } from "../ui/ConfirmButton";
import { RecoveryHint } from "./RecoveryHint";

/** What is left when the frame of the page has an error: the kill switch and the ways back. It uses nothing else. */
export function EmergencyPage({ recovery }: { recovery: string }) {
  const [result, setResult] = useState("");
  const stopAll = () =>
    request("/v1/stop", { method: "POST", body: { why: "the control center had an error" } }).then(
      () => setResult("All agents are stopped."),
      (error: unknown) => setResult(`The agents were not stopped: ${problemOf(error).message}`),
    );
  return (
    <main className="centered-page">
      <h1>Freehold</h1>
      <section className="notice" role="alert">
        <p>
          <strong>This page has an error and cannot be drawn.</strong>
        </p>
        <p>
          Agents keep running. You can stop them here. <RecoveryHint recovery={recovery} />
        </p>
        <div className="answers">
          <ConfirmButton
            label="Stop all agents"
            confirmLabel="Press again to stop"
            className="danger"
            onConfirm={() => void stopAll()}
          />
          <button type="button" onClick={() => location.reload()}>
            Reload the page
          </button>
        </div>
        <p role="status">{result}</p>
      </section>
    </main>
  );
}
