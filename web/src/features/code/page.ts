import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/code",
  title: "Code",
  icon: "notebook",
  key: "d",
  group: "Workspace",
  order: 7,
  guide: "guides/isolates.html",
  load: () => import("./NotebookPage"),
};
