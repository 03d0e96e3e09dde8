import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/memory",
  title: "Memory",
  icon: "thought",
  key: "m",
  order: 9,
  slot: "memory",
  load: () => import("./MemoryPage"),
};
