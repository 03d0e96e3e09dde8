import type { IconName } from "../../ui/Icon";

/** A section of the settings. The gateway serves each of these paths. */
export interface Section {
  path: string;
  title: string;
  description: string;
  icon: IconName;
}

export const SETTINGS_PATH = "/settings";

export const SECTIONS = [
  { path: "/settings/health", title: "Health", description: "Programs, components and ports", icon: "pulse" },
  { path: "/settings/isolation", title: "Isolation", description: "Test whether agents can escape", icon: "shield" },
  { path: "/settings/models", title: "Models and keys", description: "Model providers and their keys", icon: "key" },
  { path: "/settings/budgets", title: "Budgets", description: "Model usage and its limits", icon: "chart" },
  { path: "/settings/agents", title: "Agents", description: "Add, test and remove agents", icon: "robot" },
  { path: "/settings/slots", title: "Slots", description: "Work, runs, memory, data and events", icon: "slots" },
  { path: "/settings/access", title: "Access", description: "Sign-ins, API tokens and SSH keys", icon: "connect" },
  { path: "/settings/storage", title: "Storage", description: "Sizes, limits and what is kept", icon: "disk" },
  { path: "/settings/manifest", title: "All settings", description: "Everything in freehold.toml", icon: "settings" },
  { path: "/settings/appearance", title: "Appearance and about", description: "Theme and version", icon: "look" },
] as const satisfies readonly Section[];

export type SectionPath = (typeof SECTIONS)[number]["path"];

/** Paths of version 0.1. */
const OLD_PATHS: Record<string, SectionPath> = {
  "/settings/room": "/settings/storage",
  "/settings/look": "/settings/appearance",
};

/** The section at a path; the first one when the path names none. */
export function sectionAt(path: string): (typeof SECTIONS)[number] {
  const current = OLD_PATHS[path] ?? path;
  return SECTIONS.find((section) => section.path === current) ?? SECTIONS[0];
}
