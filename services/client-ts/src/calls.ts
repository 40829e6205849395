import type { CallFrame } from "./frames.js";
import type { EntityId, Part } from "./world.js";

/** Maximum unconfirmed calls. */
export const MAX_KEPT_CALLS = 240;
/** Maximum bytes of arguments that are unconfirmed, unless a single call takes more. */
export const MAX_KEPT_BYTES = 64 << 10;
/** Maximum entity parts that a session can call. */
export const MAX_LINKS = 10_000;
/** Bytes per second of all resent calls together: half the rate at which a server warns. */
const RESEND_RATE = 10_240;
/** Maximum bytes of a frame around the arguments. */
export const CALL_OVERHEAD = 32;
/** Maximum calls in flight to one part. */
const WINDOW = 32n;
/** Milliseconds until an unconfirmed call is first resent; doubled each time. */
const FIRST_RESEND = 500;
const LAST_RESEND = 8_000;

/** The sending end of the calls to one part. */
interface Link {
  readonly part: Part;
  readonly entity: EntityId;
  /** The highest number used. */
  last: bigint;
  /** The highest number that was sent on this connection. */
  sent: bigint;
  /** Unconfirmed calls by their numbers, ascending. */
  readonly kept: Map<bigint, Uint8Array>;
  /** When the calls in flight are resent; meaningful only while there are any. */
  due: number;
  wait: number;
  /** The last gap that was answered, and until when it is not answered again. */
  answered: readonly [have: bigint, until: number];
}

/** The highest number that need not be sent any more. */
function confirmed(link: Link): bigint {
  for (const first of link.kept.keys()) {
    return first - 1n;
  }
  return link.last;
}

function isUnderWay(link: Link): boolean {
  return link.kept.size > 0 && confirmed(link) + 1n <= link.sent;
}

function framed(link: Link, number: bigint, message: Uint8Array): CallFrame {
  const { part, entity } = link;
  return { part, entity, number, isOldest: number === confirmed(link) + 1n, message };
}

function between(link: Link, from: bigint, to: bigint): CallFrame[] {
  const frames: CallFrame[] = [];
  for (const [number, message] of link.kept) {
    if (number >= from && number <= to) {
      frames.push(framed(link, number, message));
    }
  }
  return frames;
}

function underWay(link: Link): CallFrame[] {
  return between(link, 0n, link.sent);
}

/**
 * Exactly-once calls: numbered per part over the whole session, kept until they are confirmed, and resent. Times are
 * in milliseconds.
 */
export class Calls {
  private readonly links = new Map<string, Link>();
  private count = 0;
  private bytes = 0;

  /** Number of unconfirmed calls. */
  get unconfirmed(): number {
    return this.count;
  }

  /** Numbers and keeps a call; returns its number, or why there is no room for it. */
  make(part: Part, entity: EntityId, message: Uint8Array): bigint | "TooManyKept" | "TooManyLinks" {
    const bytes = message.length + CALL_OVERHEAD;
    if (this.count >= MAX_KEPT_CALLS || (this.count > 0 && this.bytes + bytes > MAX_KEPT_BYTES)) {
      return "TooManyKept";
    }
    const key = `${part} ${entity}`;
    let link = this.links.get(key);
    if (link === undefined) {
      if (this.links.size >= MAX_LINKS) {
        return "TooManyLinks";
      }
      link = { part, entity, last: 0n, sent: 0n, kept: new Map(), due: 0, wait: 0, answered: [-1n, 0] };
      this.links.set(key, link);
    }
    link.last += 1n;
    link.kept.set(link.last, message);
    this.count += 1;
    this.bytes += bytes;
    return link.last;
  }

  /** The calls to a part that may be sent now and were not yet sent on this connection. */
  sendable(now: number, part: Part, entity: EntityId): CallFrame[] {
    const link = this.links.get(`${part} ${entity}`);
    return link === undefined ? [] : this.sendableOf(now, link);
  }

  private sendableOf(now: number, link: Link): CallFrame[] {
    if (!isUnderWay(link)) {
      link.wait = FIRST_RESEND;
      link.due = now + Math.max(link.wait, this.pace());
    }
    const frames = between(link, link.sent + 1n, confirmed(link) + WINDOW);
    link.sent = frames.at(-1)?.number ?? link.sent;
    return frames;
  }

  /** The calls to send on a new connection: of each part the unconfirmed ones, from the oldest. */
  reconnected(now: number): CallFrame[] {
    return [...this.links.values()].flatMap((link) => {
      link.sent = confirmed(link);
      return this.sendableOf(now, link);
    });
  }

  /** Confirms calls up to this number. */
  took(now: number, part: Part, entity: EntityId, upto: bigint): void {
    const link = this.links.get(`${part} ${entity}`);
    if (link === undefined) {
      return;
    }
    let taken = false;
    for (const [number, message] of link.kept) {
      if (number > upto) {
        break;
      }
      link.kept.delete(number);
      this.forget(message);
      taken = true;
    }
    if (taken) {
      const first = confirmed(link);
      link.sent = link.sent > first ? link.sent : first;
      link.wait = FIRST_RESEND;
      link.due = now + Math.max(link.wait, this.pace());
    }
  }

  /** Answers a part that asks for the calls after this number. */
  gap(now: number, part: Part, entity: EntityId, have: bigint): CallFrame[] {
    this.took(now, part, entity, have);
    const link = this.links.get(`${part} ${entity}`);
    if (link === undefined || (link.answered[0] === have && now < link.answered[1])) {
      return [];
    }
    link.due = now + Math.max(link.wait, this.pace());
    link.answered = [have, link.due];
    return underWay(link);
  }

  /**
   * The part does not exist at the moment: returns the numbers of its unconfirmed calls, and forgets them. Numbers
   * continue, since a further part of the same entity continues those of this one.
   */
  gone(part: Part, entity: EntityId): bigint[] {
    const link = this.links.get(`${part} ${entity}`);
    const kept = [...(link?.kept ?? [])];
    link?.kept.clear();
    kept.forEach(([, message]) => this.forget(message));
    return kept.map(([number]) => number);
  }

  /** The calls that have been in flight for too long without being confirmed. */
  due(now: number): CallFrame[] {
    const overdue = [...this.links.values()].filter((link) => isUnderWay(link) && link.due <= now);
    return overdue.flatMap((link) => {
      link.wait = Math.min(link.wait * 2, LAST_RESEND);
      link.due = now + Math.max(link.wait, this.pace());
      return underWay(link);
    });
  }

  /** When {@link due} next has calls. */
  deadline(): number {
    const due = [...this.links.values()].filter(isUnderWay).map((link) => link.due);
    return Math.min(Infinity, ...due);
  }

  private forget(message: Uint8Array): void {
    this.count -= 1;
    this.bytes -= message.length + CALL_OVERHEAD;
  }

  /** Minimum milliseconds between two resends of all kept calls. */
  private pace(): number {
    return Math.floor((this.bytes * 1_000) / RESEND_RATE);
  }
}
