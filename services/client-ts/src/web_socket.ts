import { CLOSE_REASONS, type CloseReason } from "./frames.js";

/** The first byte of a message. */
const FRAME = 0;
const DATAGRAM = 1;
const ECHO = 2;
/** Code of a close with the first reason. */
const FIRST_CLOSE_CODE = 4_000;
/** Milliseconds of silence after which an echo is requested. */
const ECHO_AFTER = 1_000;
/**
 * Milliseconds without an answer after which the connection is taken as lost. Doubled after each such loss, up to the
 * limit: the platform reports whole messages only, and an answer waits behind a large one on a slow connection.
 */
const LOST_AFTER = 2_000;
const LOST_AFTER_AT_MOST = 32_000;
/** Milliseconds of a connection after which the next one starts with the shortest patience again. */
const STEADY_AFTER = 60_000;
/** Bytes that wait to be sent, above which movements are dropped: later ones replace them. */
const CONGESTED = 64 << 10;

/** What a connection reports. After `closed` it reports nothing. */
export interface Listener {
  connected(): void;
  frame(body: Uint8Array): void;
  datagram(bytes: Uint8Array): void;
  closed(reason: CloseReason): void;
}

/** How long the connections of a client wait for an answer. */
export class Patience {
  private lostAfter = LOST_AFTER;

  get milliseconds(): number {
    return this.lostAfter;
  }

  /** A connection that was open for so long was lost by silence. */
  lost(openFor: number): void {
    this.lostAfter = openFor < STEADY_AFTER ? Math.min(this.lostAfter * 2, LOST_AFTER_AT_MOST) : LOST_AFTER;
  }
}

/** A connection over a WebSocket. */
export class Connection {
  private readonly socket: WebSocket;
  private readonly timer: ReturnType<typeof setInterval>;
  private readonly openedAt = Date.now();
  private heardAt = this.openedAt;
  private askedAt: number | undefined;

  constructor(
    url: string,
    protocol: string,
    private readonly patience: Patience,
    private listener: Listener | undefined,
  ) {
    this.socket = new WebSocket(url, protocol);
    this.socket.binaryType = "arraybuffer";
    this.socket.onopen = () => this.listener?.connected();
    this.socket.onmessage = ({ data }: { data: unknown }) => this.received(data);
    this.socket.onclose = ({ code }: { code: number }) => this.ended(CLOSE_REASONS[code - FIRST_CLOSE_CODE] ?? "Lost");
    this.timer = setInterval(() => this.listen(), ECHO_AFTER / 2);
  }

  frame(body: Uint8Array): void {
    this.send(FRAME, body);
  }

  datagram(bytes: Uint8Array): void {
    if (this.socket.bufferedAmount < CONGESTED) {
      this.send(DATAGRAM, bytes);
    }
  }

  /** Closes when everything before is sent. Nothing more is reported. */
  close(reason: CloseReason): void {
    this.listener = undefined;
    clearInterval(this.timer);
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

  private received(data: unknown): void {
    [this.heardAt, this.askedAt] = [Date.now(), undefined];
    const bytes = data instanceof ArrayBuffer ? new Uint8Array(data) : new Uint8Array();
    switch (bytes[0]) {
      case FRAME:
        return this.listener?.frame(bytes.subarray(1));
      case DATAGRAM:
        return this.listener?.datagram(bytes.subarray(1));
      case ECHO:
        return;
      default: {
        const { listener } = this;
        this.close("Malformed");
        listener?.closed("Lost");
      }
    }
  }

  /** Timers of pages in the background are late, so only an unanswered request counts, not the time itself. */
  private listen(): void {
    const now = Date.now();
    if (this.socket.readyState !== WebSocket.OPEN) {
      return;
    }
    if (this.askedAt !== undefined && now - this.askedAt >= this.patience.milliseconds) {
      const { listener } = this;
      this.patience.lost(now - this.openedAt);
      this.close("Lost");
      listener?.closed("Lost");
    } else if (this.askedAt === undefined && now - this.heardAt >= ECHO_AFTER) {
      this.askedAt = now;
      this.send(ECHO, new Uint8Array());
    }
  }

  private ended(reason: CloseReason): void {
    clearInterval(this.timer);
    const { listener } = this;
    this.listener = undefined;
    listener?.closed(reason);
  }
}
