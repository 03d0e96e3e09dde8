import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/editor",
  title: "Editor",
  icon: "editor",
  key: "q",
  group: "Workspace",
  order: 8.3,
  feature: "editor",
  guide: "guides/editor.html",
  load: () => import("./EditorPage"),
};
