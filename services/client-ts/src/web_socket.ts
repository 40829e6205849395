import { type Connection, type Listener, type Patience, Silence } from "./connection.js";
import { CLOSE_REASONS, type CloseReason } from "./frames.js";

/** The first byte of a message. */
const FRAME = 0;
const DATAGRAM = 1;
const ECHO = 2;
/** Code of a close with the first reason. */
const FIRST_CLOSE_CODE = 4_000;
/** Bytes that wait to be sent, above which movements are dropped: later ones replace them. */
const CONGESTED = 64 << 10;

/** A connection over a WebSocket. */
export class WebSocketConnection implements Connection {
  readonly transport = "WebSocket";
  private readonly socket: WebSocket;
  private silence: Silence | undefined;
  private isAsking = false;

  constructor(
    url: string,
    protocol: string,
    patience: Patience,
    private listener: Listener | undefined,
  ) {
    this.socket = new WebSocket(url, protocol);
    this.socket.binaryType = "arraybuffer";
    this.socket.onopen = () => {
      if (this.listener !== undefined) {
        this.silence = new Silence(patience, () => this.ask(), () => this.fail("Lost"));
        this.listener.connected();
      }
    };
    this.socket.onmessage = ({ data }: { data: unknown }) => this.received(data);
    this.socket.onclose = ({ code }: { code: number }) => this.ended(CLOSE_REASONS[code - FIRST_CLOSE_CODE] ?? "Lost");
  }

  frame(body: Uint8Array): void {
    this.send(FRAME, body);
  }

  datagram(bytes: Uint8Array): void {
    if (this.socket.bufferedAmount < CONGESTED) {
      this.send(DATAGRAM, bytes);
    }
  }

  close(reason: CloseReason): void {
    this.listener = undefined;
    this.silence?.end();
    this.socket.close(FIRST_CLOSE_CODE + CLOSE_REASONS.indexOf(reason));
  }

  private send(kind: number, body: Uint8Array): void {
    if (this.socket.readyState === WebSocket.OPEN) {
      const message = new Uint8Array(1 + body.length);
      message[0] = kind;
      message.set(body, 1);
      this.socket.send(message);
    }
  }

  /** One request is enough: none is lost while the connection is not. */
  private ask(): void {
    if (!this.isAsking) {
      this.isAsking = true;
      this.send(ECHO, new Uint8Array());
    }
  }

  private received(data: unknown): void {
    this.silence?.received();
    this.isAsking = false;
    const bytes = data instanceof ArrayBuffer ? new Uint8Array(data) : new Uint8Array();
    switch (bytes[0]) {
      case FRAME:
        return this.listener?.frame(bytes.subarray(1));
      case DATAGRAM:
        return this.listener?.datagram(bytes.subarray(1));
      case ECHO:
        return;
      default:
        this.fail("Malformed");
    }
  }

  /** Closes because of the server, which is a loss to the client. */
  private fail(reason: CloseReason): void {
    const { listener } = this;
    this.close(reason);
    listener?.closed("Lost");
  }

  private ended(reason: CloseReason): void {
    this.silence?.end();
    const { listener } = this;
    this.listener = undefined;
    listener?.closed(reason);
  }
}
