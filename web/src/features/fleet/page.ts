import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/fleet",
  title: "Fleet",
  icon: "fleet",
  key: "g",
  group: "System",
  order: 20.5,
  guide: "guides/fleet.html",
  feature: "fleet",
  load: () => import("./FleetPage"),
};
