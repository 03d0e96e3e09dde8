/** Codes of Freehold have a place in the documentation. What the page found out itself has none. */
const HAS_PAGE = /^(?!page\.|gateway\.un)[a-z-]+\.[a-z.-]+$/;

/** A link to the place of an error in the documentation. Nothing for one that has none. */
export function AboutError({ code }: { code: string }) {
  if (!HAS_PAGE.test(code)) return null;
  return (
    <p>
      <a href={`/docs/errors.html#${code}`} target="_blank" rel="noopener">
        About this error
      </a>
    </p>
  );
}
