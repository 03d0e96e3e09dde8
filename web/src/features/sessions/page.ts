import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/sessions",
  title: "Sessions",
  icon: "talk",
  key: "a",
  order: 1,
  load: () => import("./SessionsPage"),
};
