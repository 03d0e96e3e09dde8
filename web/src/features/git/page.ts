import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/git",
  title: "Git",
  icon: "branch",
  key: "v",
  group: "Workspace",
  order: 6,
  guide: "guides/git.html",
  load: () => import("./GitPage"),
};
