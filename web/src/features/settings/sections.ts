import type { IconName } from "../../ui/Icon";

/** A part of the settings with an address of its own. The gateway serves each of these paths. */
export interface Section {
  path: string;
  title: string;
  about: string;
  icon: IconName;
}

export const SETTINGS = "/settings";

export const SECTIONS = [
  { path: "/settings/health", title: "Health", about: "Programs, probes and ports", icon: "pulse" },
  { path: "/settings/isolation", title: "Isolation", about: "The doctor tries to break out", icon: "shield" },
  { path: "/settings/models", title: "Models and keys", about: "Who thinks, and with which key", icon: "key" },
  { path: "/settings/budgets", title: "Budgets", about: "What was used and what may be", icon: "chart" },
  { path: "/settings/agents", title: "Agents", about: "Who works here", icon: "robot" },
  { path: "/settings/access", title: "Access", about: "Browsers, tokens and ssh keys", icon: "connect" },
  { path: "/settings/room", title: "Room", about: "History’s size, and the computer’s limits", icon: "disk" },
  { path: "/settings/look", title: "Look and about", about: "Theme and version", icon: "look" },
] as const satisfies readonly Section[];

export type SectionPath = (typeof SECTIONS)[number]["path"];

/** The section at a path; the first one where none is named. */
export function sectionOf(path: string): (typeof SECTIONS)[number] {
  return SECTIONS.find((section) => section.path === path) ?? SECTIONS[0];
}
