import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/pods",
  title: "Data",
  icon: "person",
  key: "o",
  group: "Workspace",
  order: 8,
  guide: "guides/slots.html#pods-personal-data",
  slot: "pods",
  load: () => import("./PodsPage"),
};
