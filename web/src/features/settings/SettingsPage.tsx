import { useState, type ComponentType, type MouseEvent } from "react";
import { request } from "../../client/http";
import { Icon } from "../../ui/Icon";
import { useToasts } from "../../ui/Toasts";
import { AgentsSection } from "../agents/AgentsSection";
import { DoctorSection } from "../health/DoctorSection";
import { HealthSection } from "../health/HealthSection";
import { StopSwitch } from "../health/StopSwitch";
import { BudgetsSection } from "../models/BudgetsSection";
import { ModelsSection } from "../models/ModelsSection";
import { go, useRoute } from "../shell/route";
import { forgetEverything } from "../sessions/composer/draft";
import { LookSection } from "./LookSection";
import { RoomSection } from "./RoomSection";
import { SECTIONS, sectionOf, SETTINGS, type SectionPath } from "./sections";
import { SignIns } from "./SignIns";
import { SshKeys } from "./SshKeys";
import { Tokens } from "./Tokens";
import "./settings.css";

type Shown = ComponentType<{ onSignedOut: () => void }>;

const SHOWN: Record<SectionPath, Shown> = {
  "/settings/health": HealthSection,
  "/settings/isolation": DoctorSection,
  "/settings/models": ModelsSection,
  "/settings/budgets": BudgetsSection,
  "/settings/agents": AgentsSection,
  "/settings/access": AccessSection,
  "/settings/room": RoomSection,
  "/settings/look": LookSection,
};

function AccessSection({ onSignedOut }: { onSignedOut: () => void }) {
  return (
    <>
      <SignIns onSignedOut={onSignedOut} />
      <Tokens />
      <SshKeys />
    </>
  );
}

/** Wide: the list beside the section. Narrow: the list, and each section as a sheet of its own. */
export default function SettingsPage({ onSignedOut }: { onSignedOut: () => void }) {
  const { path, query } = useRoute();
  const section = sectionOf(path);
  const Body = SHOWN[section.path];
  const chosen = path !== SETTINGS;
  return (
    <div className="settings" data-at={chosen ? "section" : "list"}>
      <div className="settings-side">
        <header className="head settings-head">
          <h1>Settings</h1>
          <SignOut onSignedOut={onSignedOut} />
        </header>
        <nav className="settings-list" aria-label="Settings">
          {SECTIONS.map((one) => (
            <a
              key={one.path}
              href={one.path}
              aria-current={one === section ? "page" : undefined}
              onClick={(event) => follow(event, one.path)}
            >
              <Icon name={one.icon} />
              <span className="grow">
                <span>{one.title}</span>
                <span className="quiet">{one.about}</span>
              </span>
              <Icon name="chevron" size={16} />
            </a>
          ))}
        </nav>
        <StopSwitch ask={query.get("stop") === "ask"} onAsked={() => go(path, { replace: true })} />
      </div>
      <div className="settings-body" key={section.path}>
        <a className="settings-back" href={SETTINGS} onClick={(event) => follow(event, SETTINGS)}>
          <Icon name="back" size={18} /> Settings
        </a>
        <h2 className="settings-title">{section.title}</h2>
        <Body onSignedOut={onSignedOut} />
      </div>
    </div>
  );
}

function follow(event: MouseEvent, path: string) {
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  go(path);
  document.getElementById("page")?.scrollTo(0, 0);
}

function SignOut({ onSignedOut }: { onSignedOut: () => void }) {
  const toasts = useToasts();
  const [leaving, setLeaving] = useState(false);

  async function signOut() {
    setLeaving(true);
    try {
      await request("/v1/sign-out", { method: "POST", body: {} });
      forgetEverything();
      onSignedOut();
    } catch (error) {
      toasts.failed(error);
      setLeaving(false);
    }
  }

  return (
    <button className="small" disabled={leaving} onClick={() => void signOut()}>
      Sign out
    </button>
  );
}
