import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/workflows",
  title: "Workflows",
  icon: "plan",
  key: "k",
  group: "Automation",
  order: 15,
  guide: "guides/workflows.html",
  load: () => import("./WorkflowsPage"),
};
