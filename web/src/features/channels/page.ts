import type { PageDeclaration } from "../../ui/page";

export const page: PageDeclaration = {
  path: "/channels",
  title: "Channels",
  icon: "bell",
  key: "l",
  group: "Automation",
  order: 16,
  guide: "guides/channels.html",
  load: () => import("./ChannelsPage"),
};
