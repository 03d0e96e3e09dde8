import { useEffect, useRef, type ReactNode } from "react";
import { Icon } from "../../../ui/Icon";
import { AddAgent } from "../../agents/AddAgent";
import { ConnectHelp } from "../../models/ConnectHelp";
import { go } from "../../shell/route";
import { useFirst } from "./first";
import type { FirstSteps as Steps } from "./first.logic";
import "./first.css";

/** Before anyone can work here: an agent, and a model for it. */
export function FirstSteps({ steps }: { steps: Steps }) {
  const { reload, shown } = useFirst();
  const list = useRef<HTMLOListElement>(null);
  useEffect(() => {
    if (shown > 0) list.current?.querySelector<HTMLElement>("li:not([data-done]) button")?.focus();
  }, [shown]);
  return (
    <section className="first" aria-labelledby="first">
      <h2 id="first">Two steps before the first session</h2>
      <ol ref={list}>
        <Step title="Add an agent" done={steps.add === null} about="It works in the computer and never sees a key. Every file it changes can be taken back.">
          {steps.add && (
            <>
              <AddAgent agent={steps.add} onAdded={reload} />
              <button className="text-button" onClick={() => go("/settings/agents")}>
                Other agents
              </button>
            </>
          )}
        </Step>
        <Step title="Connect a model" done={steps.help === null} about="It is what the agent thinks with.">
          {steps.help !== null && (
            <>
              <button onClick={() => go("/settings/models")}>
                <Icon name="key" size={18} /> Models and keys
              </button>
              <details>
                <summary>How to connect one</summary>
                <ConnectHelp help={steps.help} />
              </details>
            </>
          )}
        </Step>
      </ol>
    </section>
  );
}

function Step({ title, about, done, children }: { title: string; about: string; done: boolean; children: ReactNode }) {
  return (
    <li data-done={done || undefined}>
      <h3>
        {title}
        {done && (
          <span className="chip" data-tone="leaf">
            done
          </span>
        )}
      </h3>
      {!done && <p className="quiet">{about}</p>}
      {children}
    </li>
  );
}
