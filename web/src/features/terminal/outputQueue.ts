import type { Piece } from "./terminalFilter.logic";

/** Characters that may wait to be drawn. The gateway keeps far less, so it is better asked again than waited for. */
export const MAX_WAITING = 4_000_000;

interface OutputQueueHandlers {
  /** Draws a text, and calls back when it is drawn. */
  draw: (text: string, done: () => void) => void;
  /** More output waits than is worth drawing. It was dropped. */
  onOverflow: () => void;
}

/** The output that waits to be drawn. One piece is drawn at a time, so that the page stays usable between two. */
export class OutputQueue {
  private waiting: Piece[] = [];
  private length = 0;
  private isDrawing = false;

  constructor(private readonly handlers: OutputQueueHandlers) {}

  add(pieces: readonly Piece[]): void {
    for (const piece of pieces) {
      this.waiting.push(piece);
      this.length += piece.text.length;
    }
    if (this.length > MAX_WAITING) {
      this.clear();
      this.handlers.onOverflow();
    } else this.drawNext();
  }

  clear(): void {
    this.waiting = [];
    this.length = 0;
  }

  private drawNext(): void {
    if (this.isDrawing) return;
    const next = this.waiting.shift();
    if (next === undefined) return;
    this.length -= next.text.length;
    this.isDrawing = true;
    this.handlers.draw(next.text, () => {
      this.isDrawing = false;
      this.drawNext();
    });
  }
}
