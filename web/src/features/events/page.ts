import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/events",
  title: "Events",
  icon: "pulse",
  key: "e",
  order: 11,
  slot: "events",
  load: () => import("./EventsPage"),
};
