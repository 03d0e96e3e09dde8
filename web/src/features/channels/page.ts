import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/channels",
  title: "Channels",
  icon: "bell",
  key: "l",
  order: 12,
  load: () => import("./ChannelsPage"),
};
