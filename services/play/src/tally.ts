/**
 * Counts what must be 0: events that were shown and are lost, and calls that took effect never, twice or out of order.
 *
 * The events of each part of an entity have ascending numbers, over reconnections and the deaths of processes. If an
 * event that was shown were lost, the realm would give its number to another one, which this notices.
 */
import type { EntityId, Part } from "../../client-ts/src/index.js";

/** Maximum parts of entities whose newest number is kept. */
const MAX_KEPT = 10_000;
/** Maximum pings without an answer; no more are sent meanwhile. */
const MAX_UNANSWERED = 20;
/** Numbers of pings are 32-bit, and start anew with each session. */
const LAST_PING = 0xffff_ffff;

export class Tally {
  shown = 0;
  lost = 0;
  answered = 0;
  /** Pings that were not answered in order, and repeated answers: a call was lost, repeated or overtaken. */
  wrong = 0;
  interruptions = 0;
  longestInterruption = 0;
  roundTrip: number | undefined;
  longestRoundTrip = 0;
  private readonly newest = new Map<string, bigint>();
  private readonly sent: { readonly number: number; readonly at: number }[] = [];
  private lastPing = 0;
  private lostAt: number | undefined;

  /** An event was shown. */
  see(part: Part, entity: EntityId, number: bigint): void {
    this.shown += 1;
    const key = `${part} ${entity}`;
    if (number <= (this.newest.get(key) ?? 0n)) {
      this.lost += 1;
    }
    // The map is ordered: the part whose last event is the oldest is dropped first.
    this.newest.delete(key);
    this.newest.set(key, number);
    if (this.newest.size > MAX_KEPT) {
      this.newest.delete(this.newest.keys().next().value as string);
    }
  }

  /** The number of the next ping; `undefined` if too many are unanswered. */
  nextPing(now: number): number | undefined {
    if (this.sent.length >= MAX_UNANSWERED || this.lastPing === LAST_PING) {
      return undefined;
    }
    this.lastPing += 1;
    this.sent.push({ number: this.lastPing, at: now });
    return this.lastPing;
  }

  /** A ping was answered. */
  pong(number: number, now: number): void {
    // Those before it are answered never, or too late.
    const at = this.sent.findIndex((ping) => ping.number === number);
    this.wrong += at < 0 ? 1 : at;
    const [expected] = this.sent.splice(0, at + 1).slice(-1);
    if (expected === undefined) {
      return;
    }
    this.answered += 1;
    this.roundTrip = now - expected.at;
    this.longestRoundTrip = Math.max(this.longestRoundTrip, this.roundTrip);
  }

  get unanswered(): number {
    return this.sent.length;
  }

  interrupted(now: number): void {
    this.interruptions += 1;
    this.lostAt = now;
  }

  resumed(now: number): void {
    if (this.lostAt !== undefined) {
      this.longestInterruption = Math.max(this.longestInterruption, now - this.lostAt);
      this.lostAt = undefined;
    }
  }
}
