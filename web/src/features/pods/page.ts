import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/pods",
  title: "Data",
  icon: "folder",
  key: "d",
  order: 9,
  slot: "pods",
  load: () => import("./PodsPage"),
};
