import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/events",
  title: "Events",
  icon: "pulse",
  key: "e",
  group: "Automation",
  order: 17,
  guide: "guides/slots.html#events-what-others-are-told",
  slot: "events",
  load: () => import("./EventsPage"),
};
