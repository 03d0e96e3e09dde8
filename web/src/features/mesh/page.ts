import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/neighbours",
  title: "Neighbours",
  icon: "neighbours",
  key: "y",
  group: "System",
  order: 20,
  feature: "mesh",
  guide: "guides/neighbours.html",
  load: () => import("./NeighboursPage"),
};
