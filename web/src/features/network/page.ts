import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/network",
  title: "Network",
  icon: "network",
  key: "n",
  group: "System",
  order: 18,
  guide: "guides/egress.html",
  load: () => import("./NetworkPage"),
};
