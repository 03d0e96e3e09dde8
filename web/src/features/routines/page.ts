import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/routines",
  title: "Routines",
  icon: "reload",
  key: "u",
  group: "Automation",
  order: 14,
  guide: "guides/routines.html",
  load: () => import("./RoutinesPage"),
};
