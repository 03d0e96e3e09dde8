import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/pods",
  title: "Data",
  icon: "person",
  key: "o",
  order: 10,
  slot: "pods",
  load: () => import("./PodsPage"),
};
