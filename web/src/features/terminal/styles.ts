/**
 * xterm writes its measures and colours into style elements, which the content policy forbids. While it opens, it is
 * given elements whose text becomes a constructed sheet instead: allowed, since no markup can make one.
 */
export function withConstructedStyles(open: () => void): () => void {
  const sheets: CSSStyleSheet[] = [];
  const make = document.createElement.bind(document);
  document.createElement = ((name: string, options?: ElementCreationOptions) => {
    if (name !== "style") return make(name, options);
    const sheet = new CSSStyleSheet();
    sheets.push(sheet);
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
    const stand = make("span");
    stand.hidden = true;
    Object.defineProperty(stand, "textContent", { set: (text: string) => sheet.replaceSync(text) });
    return stand;
  }) as typeof document.createElement;
  try {
    open();
  } finally {
    document.createElement = make;
  }
  return () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((sheet) => !sheets.includes(sheet));
  };
}
