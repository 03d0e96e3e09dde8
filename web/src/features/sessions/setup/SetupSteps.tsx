import { type ReactNode, useEffect, useRef } from "react";
import { Icon } from "../../../ui/Icon";
import { go } from "../../../ui/route";
import { AddAgent } from "../../agents/AddAgent";
import { useSetup } from "./SetupProvider";
import type { Setup } from "./setup.logic";
import { TourButton } from "./TourButton";
import "./setup.css";

/** The steps before the first session: add an agent and connect a model. */
export function SetupSteps({ setup }: { setup: Setup }) {
  const { reload, timesShown, connectModel } = useSetup();
  const list = useRef<HTMLOListElement>(null);
  useEffect(() => {
    if (timesShown > 0) list.current?.querySelector<HTMLElement>("li:not([data-done]) button")?.focus();
  }, [timesShown]);
  return (
    <section className="setup" aria-labelledby="setup">
      <h2 id="setup">Two steps to your first session</h2>
      <ol ref={list}>
        <Step
          title="Add an agent"
          done={setup.missingAgent === null}
          description="The agent works inside the computer and never sees your keys. You can undo every file change."
        >
          {setup.missingAgent && (
            <>
              <AddAgent agent={setup.missingAgent} onAdded={reload} />
              <button type="button" className="text-button" onClick={() => go("/settings/agents")}>
                Choose another agent
              </button>
            </>
          )}
        </Step>
        <Step
          title="Connect a model"
          done={!setup.needsModel}
          description="With a key, with a subscription, or with a model on this machine. Agents never see the key."
        >
          {setup.needsModel && (
            <>
              <button type="button" className={setup.missingAgent ? "" : "primary"} onClick={connectModel}>
                <Icon name="key" size={18} /> Connect a model
              </button>
              {setup.hasBuiltin && <TourButton />}
            </>
          )}
        </Step>
      </ol>
    </section>
  );
}

interface StepProps {
  title: string;
  description: string;
  done: boolean;
  children: ReactNode;
}

function Step({ title, description, done, children }: StepProps) {
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
      {!done && <p className="quiet">{description}</p>}
      {children}
    </li>
  );
}
