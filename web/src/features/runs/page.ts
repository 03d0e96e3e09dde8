import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/runs",
  title: "Runs",
  icon: "robot",
  key: "r",
  order: 5.7,
  load: () => import("./RunsPage"),
};
