const PATHS = {
  talk: "M4 5h16v11H9l-5 4z",
  history: "M4 12a8 8 0 1 0 2.5-5.8M4 4v4h4M12 8v4.5l3 1.8",
  files: "M3 6h6l2 2h10v11H3z",
  terminal: "M3 5h18v14H3zM7 9.5l3 2.5-3 2.5M12.5 15H17",
  notebook: "M6 3h13v18H6zM6 3v18M3.5 7h4M3.5 12h4M3.5 17h4M11 8.5l2.5 2L11 12.5M14.5 13H16",
  book: "M4 5c3-1 6-1 8 1 2-2 5-2 8-1v13c-3-1-6-1-8 1-2-2-5-2-8-1zM12 6v13",
  play: "M7 4.5v15l12-7.5z",
  stop: "M6 6h12v12H6z",
  network: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM3 12h18M12 3c3 3 3 15 0 18M12 3c-3 3-3 15 0 18",
  connect: "M9 15l6-6M8 11l-2.5 2.5a3.5 3.5 0 0 0 5 5L13 16M16 13l2.5-2.5a3.5 3.5 0 0 0-5-5L11 8",
  neighbours: "M3 20v-9l4.5-4 4.5 4v9zM14.5 20H21v-7l-4-3.5-2.5 2.2M6.5 20v-4h2v4",
  fleet: "M4 4h16v6H4zM4 14h16v6H4zM8 7h.01M8 17h.01M12 7h4M12 17h4",
  settings: "M4 7h9M17 7h3M4 17h3M11 17h9M15 4.5v5M9 14.5v5",
  folder: "M3 6h6l2 2h10v11H3z",
  person: "M12 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM4 21c0-6.5 16-6.5 16 0",
  slots: "M4 4h7v7H4zM13 4h7v7h-7zM4 13h7v7H4zM13 13h7v7h-7z",
  file: "M6 3h8l4 4v14H6zM14 3v4h4",
  link: "M9 15l6-6M10 7h7v7",
  chevron: "M9 6l6 6-6 6",
  back: "M15 6l-6 6 6 6",
  undo: "M8 5L4 9l4 4M4 9h9a6 6 0 0 1 0 12h-2",
  redo: "M16 5l4 4-4 4M20 9h-9a6 6 0 0 0 0 12h2",
  plus: "M12 5v14M5 12h14",
  close: "M6 6l12 12M18 6L6 18",
  search: "M11 5a6 6 0 1 0 0 12 6 6 0 0 0 0-12zM15.5 15.5L20 20",
  download: "M12 4v11M7 11l5 5 5-5M5 20h14",
  upload: "M12 16V5M7 9l5-5 5 5M5 20h14",
  microphone: "M12 3a3 3 0 0 0-3 3v5a3 3 0 0 0 6 0V6a3 3 0 0 0-3-3zM6 11a6 6 0 0 0 12 0M12 17v4M9 21h6",
  more: "M5 12h.01M12 12h.01M19 12h.01",
  warning: "M12 4l9 16H3zM12 10v4M12 17h.01",
  pulse: "M3 12h4l3-8 4 16 3-8h4",
  shield: "M12 3l8 3v6c0 5-4 8-8 9-4-1-8-4-8-9V6z",
  chart: "M3 20h18M6 16v-5M12 16V5M18 16v-8",
  robot: "M5 9h14v10H5zM12 9V5M9.5 13.5h.01M14.5 13.5h.01M2.5 13v3M21.5 13v3",
  disk: "M4 6c0-3.5 16-3.5 16 0v12c0 3.5-16 3.5-16 0zM4 6c0 3.5 16 3.5 16 0M4 12c0 3.5 16 3.5 16 0",
  look: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2.5v2M12 19.5v2M2.5 12h2M19.5 12h2M5.3 5.3l1.4 1.4M17.3 17.3l1.4 1.4M18.7 5.3l-1.4 1.4M6.7 17.3l-1.4 1.4",
  key: "M14 10a4 4 0 1 1-3-3.9A4 4 0 0 1 14 10zM13 12l7 7M17 16l2-2",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  check: "M5 12.5l4.5 4.5L19 7.5",
  bell: "M6 17h12l-1.5-2.5V10a4.5 4.5 0 0 0-9 0v4.5zM10 20h4M12 3v2.5",
  edit: "M4 20l1-4L16.5 4.5l3 3L8 19zM14 7l3 3",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  thought: "M9 18h6M10 21h4M8.5 15a6 6 0 1 1 7 0c-.6.5-1 1-1 2h-5c0-1-.4-1.5-1-2z",
  tool: "M14.5 6.5a4 4 0 0 1 5-1l-2.7 2.7 1 1L20.5 6.5a4 4 0 0 1-5.5 5L8 18.5a2 2 0 0 1-2.8-2.8L12 9a4 4 0 0 1 2.5-2.5z",
  image: "M4 5h16v14H4zM4 16l5-5 4 4 3-3 4 4M15 9h.01",
  down: "M12 5v14M6 13l6 6 6-6",
  up: "M12 19V5M6 11l6-6 6 6",
  plan: "M4 6l1.5 1.5L8 5M4 13l1.5 1.5L8 12M4 20l1.5 1.5L8 19M12 6.5h8M12 13.5h8M12 20.5h8",
  desktop: "M3 4h18v12H3zM9 20h6M12 16v4M6 7h5v5H6z",
  editor: "M9 7l-5 5 5 5M15 7l5 5-5 5M13.5 5l-3 14",
  preview: "M3 5h18v14H3zM3 9h18M6 7h.01M8.5 7h.01",
  branch:
    "M7 4v11M7 15a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5zM17 4a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5zM17 9c0 4-10 2-10 6",
  reload: "M20 12a8 8 0 1 1-2.5-5.8M20 4v4h-4",
  phone: "M8 3h8v18H8zM11 18h2",
  tablet: "M5 3h14v18H5zM11 18h2",
  full: "M3 5h18v12H3zM9 21h6M12 17v4",
  out: "M10 5H5v14h14v-5M13 5h6v6M19 5l-8 8",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 20 }: { name: IconName; size?: number }) {
  return (
    <svg
      className="icon"
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth={name === "more" ? 3 : 1.75}
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
