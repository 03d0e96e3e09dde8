import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/beads",
  title: "Work",
  icon: "plan",
  key: "w",
  order: 7,
  slot: "beads",
  load: () => import("./BeadsPage"),
};
