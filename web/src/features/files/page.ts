import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/files",
  title: "Files",
  icon: "files",
  key: "f",
  group: "start",
  order: 3,
  guide: "guides/control-center.html",
  load: () => import("./FilesPage"),
};
