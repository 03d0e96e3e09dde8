import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/network",
  title: "Network",
  icon: "network",
  key: "n",
  order: 12,
  load: () => import("./NetworkPage"),
};
