import { writeMovementAck } from "./frames.js";
import type { MovementAck } from "./predicted.js";

/** Maximum time that an acknowledgement waits, milliseconds: a client that moves sends something ten times a second. */
const HELD_FOR = 150;

interface Waiting {
  readonly until: number;
  readonly view: bigint;
  readonly ack: MovementAck;
}

/**
 * The acknowledgement of predicted movements, which waits to leave in one packet with what the client sends next: a packet
 * of its own costs the base about as much as a movement. An acknowledgement contains those before it. What the server does
 * not know to be read costs it some bytes, and nothing else.
 */
export class HeldAck {
  private waiting: Waiting | undefined;

  /** Holds the acknowledgement of movements that were read from a view, instead of an earlier one of the same view. */
  hold(now: number, view: bigint, ack: MovementAck): void {
    this.waiting = { until: this.waiting?.until ?? now + HELD_FOR, view, ack };
  }

  /** Takes it, as a datagram. */
  take(): Uint8Array | undefined {
    const { waiting } = this;
    this.waiting = undefined;
    return waiting && writeMovementAck(waiting.view, waiting.ack);
  }

  /** Takes it if it has waited long enough. */
  takeOverdue(now: number): Uint8Array | undefined {
    return this.deadline() <= now ? this.take() : undefined;
  }

  /** Discards it: the view is not continued. */
  discard(): void {
    this.waiting = undefined;
  }

  deadline(): number {
    return this.waiting?.until ?? Infinity;
  }
}
