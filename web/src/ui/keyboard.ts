/** Whether keys belong to the element that has the focus: a field, the editor, a terminal. */
export function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || target.closest("input, textarea, select, [data-keys]") !== null;
}

/** Whether a dialog is open: then keys of the page do nothing. */
export const isDialogOpen = (): boolean => document.querySelector("dialog[open]") !== null;
