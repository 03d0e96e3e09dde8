/** The mark of Freehold. It is drawn in the page, as an image it would be one more request before the first picture. */
export function Logo({ size }: { size: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 64 64" aria-hidden="true">
      <rect width="64" height="64" rx="14" fill="#1f4d3f" />
      <path d="M14 33 32 16l18 17v15a3 3 0 0 1-3 3H38V38H26v13h-9a3 3 0 0 1-3-3z" fill="#f3ead7" />
    </svg>
  );
}
