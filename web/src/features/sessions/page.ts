import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/sessions",
  title: "Sessions",
  icon: "talk",
  key: "a",
  group: "start",
  order: 1,
  guide: "guides/sessions.html",
  load: () => import("./SessionsPage"),
};
