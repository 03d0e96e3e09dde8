import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/memory",
  title: "Memory",
  icon: "thought",
  key: "m",
  group: "Agents",
  order: 11,
  guide: "guides/slots.html#memory-what-agents-remember",
  slot: "memory",
  load: () => import("./MemoryPage"),
};
