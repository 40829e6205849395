import type { CloseReason } from "./frames.js";

/** What carries a connection. */
export type TransportName = "WebTransport" | "WebSocket";

/** What a connection reports. After `closed` it reports nothing. */
export interface Listener {
  connected(): void;
  frame(body: Uint8Array): void;
  datagram(bytes: Uint8Array): void;
  closed(reason: CloseReason): void;
}

/** A connection to a process of the realm. */
export interface Connection {
  readonly transport: TransportName;
  frame(body: Uint8Array): void;
  /** Sends a datagram, or drops it if it cannot leave soon. */
  datagram(bytes: Uint8Array): void;
  /** Closes when everything before is sent. Nothing more is reported. */
  close(reason: CloseReason): void;
}

/** Milliseconds of silence after which an echo is requested. */
const ECHO_AFTER = 1_000;
/** Milliseconds between two looks at the silence. */
const LISTEN_EVERY = 500;
/**
 * Milliseconds without an answer after which the connection is taken as lost. Doubled after each such loss, up to the
 * limit: a WebSocket reports whole messages only, and an answer waits behind a large one on a slow connection.
 */
const LOST_AFTER = 2_000;
const LOST_AFTER_AT_MOST = 32_000;
/** Milliseconds of a connection after which the next one starts with the shortest patience again. */
const STEADY_AFTER = 60_000;

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

/**
 * Listens for the silence of a connection that is open. Timers of pages in the background are late, so only an
 * unanswered request counts, not the time itself. The first timer of a page that stood still, on a busy machine, comes
 * before what was received meanwhile: a request counts as unanswered when it is overdue twice in a row.
 */
export class Silence {
  private readonly timer: ReturnType<typeof setInterval>;
  private readonly openedAt = Date.now();
  private receivedAt = this.openedAt;
  private askedAt: number | undefined;
  /** Whether the last look found the request overdue. */
  private isOverdue = false;

  constructor(
    private readonly patience: Patience,
    /** Requests an echo; repeated until something arrives. */
    private readonly ask: () => void,
    private readonly lost: () => void,
  ) {
    this.timer = setInterval(() => this.listen(), LISTEN_EVERY);
  }

  received(): void {
    [this.receivedAt, this.askedAt, this.isOverdue] = [Date.now(), undefined, false];
  }

  end(): void {
    clearInterval(this.timer);
  }

  private listen(): void {
    const now = Date.now();
    const wasOverdue = this.isOverdue;
    this.isOverdue = this.askedAt !== undefined && now - this.askedAt >= this.patience.milliseconds - LISTEN_EVERY;
    if (this.isOverdue && wasOverdue) {
      this.end();
      this.patience.lost(now - this.openedAt);
      this.lost();
    } else if (now - this.receivedAt >= ECHO_AFTER) {
      this.askedAt ??= now;
      this.ask();
    }
  }
}
