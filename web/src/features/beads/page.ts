import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/beads",
  title: "Work",
  icon: "plan",
  key: "w",
  group: "Agents",
  order: 12,
  guide: "guides/slots.html#beads-work-items",
  slot: "beads",
  load: () => import("./BeadsPage"),
};
