const PATHS = {
  talk: "M4 5h16v11H9l-5 4z",
  history: "M4 12a8 8 0 1 0 2.5-5.8M4 4v4h4M12 8v4.5l3 1.8",
  files: "M3 6h6l2 2h10v11H3z",
  terminal: "M3 5h18v14H3zM7 9.5l3 2.5-3 2.5M12.5 15H17",
  network: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM3 12h18M12 3c3 3 3 15 0 18M12 3c-3 3-3 15 0 18",
  connect: "M9 15l6-6M8 11l-2.5 2.5a3.5 3.5 0 0 0 5 5L13 16M16 13l2.5-2.5a3.5 3.5 0 0 0-5-5L11 8",
  settings: "M4 7h9M17 7h3M4 17h3M11 17h9M15 4.5v5M9 14.5v5",
  folder: "M3 6h6l2 2h10v11H3z",
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
  more: "M5 12h.01M12 12h.01M19 12h.01",
  warning: "M12 4l9 16H3zM12 10v4M12 17h.01",
  key: "M14 10a4 4 0 1 1-3-3.9A4 4 0 0 1 14 10zM13 12l7 7M17 16l2-2",
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
