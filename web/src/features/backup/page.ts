import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/backup",
  title: "Backups",
  icon: "disk",
  key: "b",
  group: "System",
  order: 21,
  guide: "guides/backup.html",
  load: () => import("./BackupPage"),
};
