import { MAX_KEPT_CALLS } from "./calls.js";
import type { EndReason } from "./events.js";
import type { EncodedCall } from "./exposed.js";
import type { CallRefusal } from "./frames.js";
import type { CallFailure, Reply } from "./replies.js";
import type { EntityId, Part, Value } from "./world.js";

/**
 * Maximum calls that wait for an answer: all that may be unconfirmed, and three times as many that are confirmed and
 * were not yet answered.
 */
export const MAX_ASKS = 4 * MAX_KEPT_CALLS;

/** The return values of a method by their names. */
export interface ReturnValues {
  readonly [name: string]: Value;
}

/** A two-way call has no return values. */
export class CallFailed extends Error {
  constructor(
    /** The method's name. */
    readonly method: string,
    readonly failure: CallFailure,
  ) {
    super(`${method}: ${describe(failure)}`);
    this.name = "CallFailed";
  }
}

function describe(failure: CallFailure): string {
  switch (failure.kind) {
    case "authenticate":
      return `not allowed: ${failure.text}`;
    case "internal":
      return `the receiver failed: ${failure.text}`;
    case "invalidArgs":
      return `the arguments do not fit: ${failure.text}`;
    case "noReply":
      return "no answer came in time";
    case "noSuchEntity":
      return "there is no such entity";
    case "noSuchCellEntity":
      return "the entity has no cell part";
    case "custom":
      return `${failure.name}: ${failure.text}`;
    case "refused":
      return `refused: ${failure.reason}`;
    case "lost":
      return "the called part does not exist any more";
    case "ended":
      return "the client has ended";
  }
}

/** A call that waits for its answer. */
interface Ask {
  readonly id: number;
  readonly part: Part;
  readonly entity: EntityId;
  readonly encoded: EncodedCall;
  readonly until: number;
}

/** How a call has ended. */
export interface Settled {
  readonly id: number;
  readonly outcome: ReturnValues | CallFailed;
}

/**
 * Calls that wait for answers, over reconnections. What was sent and confirmed is no concern of theirs. Times are in
 * milliseconds.
 */
export class Asks {
  private readonly pending = new Map<string, Ask>();
  private settled: Settled[] = [];
  private asked = 0;

  get isFull(): boolean {
    return this.pending.size >= MAX_ASKS;
  }

  /** A call with this number waits for its answer; returns the id under which it settles. */
  add(part: Part, entity: EntityId, number: bigint, encoded: EncodedCall, until: number): number {
    const id = ++this.asked;
    this.pending.set(keyOf(part, entity, number), { id, part, entity, encoded, until });
    return id;
  }

  /** What has settled since the last time. */
  takeSettled(): Settled[] {
    return this.settled.splice(0);
  }

  /** The server has answered a call, which may wait no more. */
  answered(entity: EntityId, { part, call, method, outcome }: Reply): void {
    const key = keyOf(part, entity, call);
    const ask = this.pending.get(key);
    if (ask === undefined || ask.encoded.method !== method) {
      return;
    }
    if (!outcome.ok) {
      return this.fail(key, ask, outcome.failure);
    }
    const returns = ask.encoded.described.returns ?? [];
    this.settle(key, ask, Object.fromEntries(returns.map(([name], i) => [name, outcome.values[i] as Value])));
  }

  refused(part: Part, entity: EntityId, number: bigint, reason: CallRefusal): void {
    const key = keyOf(part, entity, number);
    const ask = this.pending.get(key);
    if (ask !== undefined) {
      this.fail(key, ask, { kind: "refused", reason });
    }
  }

  /** The part does not exist any more: its confirmed calls are not answered either. */
  gone(part: Part, entity: EntityId): void {
    this.failAll({ kind: "lost" }, (ask) => ask.part === part && ask.entity === entity);
  }

  ended(reason: EndReason): void {
    this.failAll({ kind: "ended", reason }, () => true);
  }

  /** Ends the wait for answers that are overdue. */
  expire(now: number): void {
    this.failAll({ kind: "noReply" }, ({ until }) => until <= now);
  }

  /** When {@link expire} is due. */
  deadline(): number {
    return Math.min(Infinity, ...[...this.pending.values()].map(({ until }) => until));
  }

  private failAll(failure: CallFailure, isMeant: (ask: Ask) => boolean): void {
    for (const [key, ask] of this.pending) {
      if (isMeant(ask)) {
        this.fail(key, ask, failure);
      }
    }
  }

  private fail(key: string, ask: Ask, failure: CallFailure): void {
    this.settle(key, ask, new CallFailed(ask.encoded.described.name, failure));
  }

  private settle(key: string, { id }: Ask, outcome: Settled["outcome"]): void {
    this.pending.delete(key);
    this.settled.push({ id, outcome });
  }
}

function keyOf(part: Part, entity: EntityId, number: bigint): string {
  return `${part} ${entity} ${number}`;
}
