import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/history",
  title: "History",
  icon: "history",
  key: "h",
  order: 2,
  load: () => import("./HistoryPage"),
};
