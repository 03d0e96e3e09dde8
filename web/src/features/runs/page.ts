import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/runs",
  title: "Runs",
  icon: "robot",
  key: "r",
  order: 8,
  slot: "orchestrator",
  load: () => import("./RunsPage"),
};
