import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/workflows",
  title: "Workflows",
  icon: "plan",
  key: "k",
  order: 8.6,
  load: () => import("./WorkflowsPage"),
};
