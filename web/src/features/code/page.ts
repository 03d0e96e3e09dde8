import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/code",
  title: "Code",
  icon: "notebook",
  key: "d",
  order: 5,
  load: () => import("./NotebookPage"),
};
