import { openSocket } from "../../client/signInKey";
import { canReconnect } from "./terminal.logic";

const RETRY_DELAY = 1_000;

interface TerminalSocketHandlers {
  /** Connected. The gateway now sends everything that the terminal shows. */
  onOpen: () => void;
  onOutput: (bytes: Uint8Array) => void;
  /** The program in the terminal ended. */
  onEnded: () => void;
}

/** The connection to one terminal. It reconnects until the program ends or it is closed. */
export class TerminalSocket {
  private socket: WebSocket | null = null;
  private retryTimer = 0;
  private closed = false;
  private readonly encoder = new TextEncoder();

  constructor(
    private readonly id: string,
    private readonly handlers: TerminalSocketHandlers,
  ) {}

  connect(): void {
    const socket = openSocket(`/v1/terminals/${encodeURIComponent(this.id)}/socket`);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => this.handlers.onOpen();
    socket.onmessage = (event: MessageEvent) => {
      if (event.data instanceof ArrayBuffer) this.handlers.onOutput(new Uint8Array(event.data));
    };
    socket.onclose = (event) => {
      if (this.closed) return;
      if (canReconnect(event.code)) this.retryTimer = window.setTimeout(() => this.connect(), RETRY_DELAY);
      else this.handlers.onEnded();
    };
    this.socket = socket;
  }

  sendText(text: string): void {
    this.send(this.encoder.encode(text));
  }

  /** Sends a text whose characters are bytes. */
  sendBinary(text: string): void {
    this.send(Uint8Array.from(text, (char) => char.charCodeAt(0)));
  }

  sendSize(rows: number, columns: number): void {
    this.send(JSON.stringify({ type: "resize", rows, columns }));
  }

  /** Connects again, for everything that the terminal shows now. */
  reconnect(): void {
    if (this.socket !== null) {
      this.socket.onclose = null;
      this.socket.onmessage = null;
      this.socket.close();
    }
    this.retryTimer = window.setTimeout(() => this.connect(), RETRY_DELAY);
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.retryTimer);
    this.socket?.close();
  }

  private send(data: string | Uint8Array<ArrayBuffer>): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(data);
  }
}
