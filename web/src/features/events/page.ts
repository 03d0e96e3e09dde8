import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/events",
  title: "Events",
  icon: "pulse",
  key: "e",
  order: 5.8,
  load: () => import("./EventsPage"),
};
