import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/files",
  title: "Files",
  icon: "files",
  key: "f",
  order: 3,
  load: () => import("./FilesPage"),
};
