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

interface Rows {
  _addStyle: (element: HTMLElement, style: string) => void;
}

interface Inside {
  _core?: { _renderService?: { _renderer?: { value?: { _rowFactory?: Rows } } } };
}

/**
 * A cell's own colours (of 24 bits, or of something found) go into a style attribute, which the content policy forbids,
 * too. xterm offers no other way, so that its row factory is given one: the style's object, which is allowed.
 */
export function withStyleObjects(terminal: object): void {
  const rows = (terminal as Inside)._core?._renderService?._renderer?.value?._rowFactory;
  if (rows !== undefined) rows._addStyle = (element, style) => void (element.style.cssText += `${style};`);
}
