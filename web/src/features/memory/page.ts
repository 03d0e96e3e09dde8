import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/memory",
  title: "Memory",
  icon: "thought",
  key: "m",
  order: 5.7,
  load: () => import("./MemoryPage"),
};
