/**
 * Opens a terminal without style elements. xterm writes sizes and colours into them, and the content policy forbids
 * them. While it opens, it gets elements whose text becomes a constructed sheet, which the policy allows.
 */
export function openWithConstructedStyles(open: () => void): () => void {
  const sheets: CSSStyleSheet[] = [];
  const make = document.createElement.bind(document);
  document.createElement = ((name: string, options?: ElementCreationOptions) => {
    if (name !== "style") return make(name, options);
    const sheet = new CSSStyleSheet();
    sheets.push(sheet);
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
    const standIn = make("span");
    standIn.hidden = true;
    Object.defineProperty(standIn, "textContent", { set: (text: string) => sheet.replaceSync(text) });
    return standIn;
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

interface RowFactory {
  _addStyle: (element: HTMLElement, style: string) => void;
}

interface XtermInternals {
  _core?: { _renderService?: { _renderer?: { value?: { _rowFactory?: RowFactory } } } };
}

/**
 * Makes xterm set the style object of a cell instead of its style attribute, which the content policy forbids too. It is
 * used for 24-bit colours and search marks. xterm has no option for it, so its row factory is changed.
 */
export function replaceStyleAttributes(terminal: object): void {
  const rows = (terminal as XtermInternals)._core?._renderService?._renderer?.value?._rowFactory;
  if (rows === undefined) return;
  rows._addStyle = (element, style) => {
    element.style.cssText += `${style};`;
  };
}
