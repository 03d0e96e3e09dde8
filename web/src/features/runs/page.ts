import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/runs",
  title: "Runs",
  icon: "robot",
  key: "r",
  group: "Agents",
  order: 13,
  guide: "guides/slots.html#orchestrator-agents-that-work-for-you-in-parallel",
  slot: "orchestrator",
  load: () => import("./RunsPage"),
};
