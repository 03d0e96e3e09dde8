import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/desktop",
  title: "Desktop",
  icon: "desktop",
  key: "z",
  group: "Workspace",
  order: 8.6,
  feature: "desktop",
  guide: "guides/desktop.html",
  load: () => import("./DesktopPage"),
};
