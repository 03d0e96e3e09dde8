import { type ComponentType, type MouseEvent, useState } from "react";
import { ErrorBoundary } from "../../ui/ErrorBoundary";
import { Icon } from "../../ui/Icon";
import { followLink, go, useRoute } from "../../ui/route";
import { useToasts } from "../../ui/Toasts";
import { AgentsSection } from "../agents/AgentsSection";
import { DoctorSection } from "../health/DoctorSection";
import { HealthSection } from "../health/HealthSection";
import { KillSwitchCard } from "../kill-switch/KillSwitchCard";
import { BudgetsSection } from "../models/BudgetsSection";
import { ModelsSection } from "../models/ModelsSection";
import { signOut } from "../sign-in/signOut";
import { SlotsSection } from "../slots/SlotsSection";
import { AppearanceSection } from "./AppearanceSection";
import { ManifestSettings } from "./ManifestSettings";
import { SignIns } from "./SignIns";
import { SshKeys } from "./SshKeys";
import { StorageSection } from "./StorageSection";
import { SECTIONS, SETTINGS_PATH, type SectionPath, sectionAt } from "./sections";
import { Tokens } from "./Tokens";
import "./settings.css";

const COMPONENTS: Record<SectionPath, ComponentType<{ onSignedOut: () => void }>> = {
  "/settings/health": HealthSection,
  "/settings/isolation": DoctorSection,
  "/settings/models": ModelsSection,
  "/settings/budgets": BudgetsSection,
  "/settings/agents": AgentsSection,
  "/settings/slots": SlotsSection,
  "/settings/access": AccessSection,
  "/settings/storage": StorageSection,
  "/settings/manifest": ManifestSettings,
  "/settings/appearance": AppearanceSection,
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

/** On a wide screen the list of sections is beside the open one. On a narrow one each has a page of its own. */
export default function SettingsPage({ onSignedOut }: { onSignedOut: () => void }) {
  const { path, query } = useRoute();
  const section = sectionAt(path);
  const SectionComponent = COMPONENTS[section.path];
  return (
    <div className="settings" data-at={path === SETTINGS_PATH ? "list" : "section"}>
      <div className="settings-side">
        <header className="head settings-head">
          <h1>Settings</h1>
          <SignOutButton onSignedOut={onSignedOut} />
        </header>
        <nav className="settings-list" aria-label="Settings">
          {SECTIONS.map((one) => (
            <a
              key={one.path}
              href={one.path}
              aria-current={one === section ? "page" : undefined}
              onClick={(event) => openSection(event, one.path)}
            >
              <Icon name={one.icon} />
              <span className="grow">
                <span>{one.title}</span>
                <span className="quiet">{one.description}</span>
              </span>
              <Icon name="chevron" size={16} />
            </a>
          ))}
        </nav>
        <KillSwitchCard pressed={query.get("stop") === "ask"} onPressSeen={() => go(path, { replace: true })} />
      </div>
      <h1 className="visually-hidden settings-narrow-title">Settings</h1>
      <div className="settings-body" key={section.path}>
        <a className="settings-back" href={SETTINGS_PATH} onClick={(event) => openSection(event, SETTINGS_PATH)}>
          <Icon name="back" size={18} /> Settings
        </a>
        <h2 className="settings-title">{section.title}</h2>
        <ErrorBoundary name={section.title}>
          <SectionComponent onSignedOut={onSignedOut} />
        </ErrorBoundary>
      </div>
    </div>
  );
}

function openSection(event: MouseEvent, path: string) {
  followLink(event, path);
  if (event.defaultPrevented) document.getElementById("page")?.scrollTo(0, 0);
}

function SignOutButton({ onSignedOut }: { onSignedOut: () => void }) {
  const toasts = useToasts();
  const [busy, setBusy] = useState(false);

  async function leave() {
    setBusy(true);
    try {
      await signOut();
      onSignedOut();
    } catch (error) {
      toasts.failed(error);
      setBusy(false);
    }
  }

  return (
    <button type="button" className="small" disabled={busy} onClick={() => void leave()}>
      Sign out
    </button>
  );
}
