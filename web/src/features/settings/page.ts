import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/settings",
  title: "Settings",
  icon: "settings",
  key: "s",
  group: "end",
  order: 22,
  guide: "guides/control-center.html",
  load: () => import("./SettingsPage"),
};
