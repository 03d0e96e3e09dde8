import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/mcp",
  title: "Tools",
  icon: "tool",
  key: "x",
  group: "Agents",
  order: 10,
  guide: "guides/mcp.html",
  load: () => import("./McpPage"),
};
