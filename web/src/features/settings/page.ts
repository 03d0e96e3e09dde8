import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/settings",
  title: "Settings",
  icon: "settings",
  key: "s",
  order: 14,
  load: () => import("./SettingsPage"),
};
