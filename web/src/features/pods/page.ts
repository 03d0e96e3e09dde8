import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/pods",
  title: "Data",
  icon: "folder",
  key: "d",
  order: 5.6,
  load: () => import("./PodsPage"),
};
