import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/routines",
  title: "Routines",
  icon: "reload",
  key: "u",
  order: 8.5,
  load: () => import("./RoutinesPage"),
};
