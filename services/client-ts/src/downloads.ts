import type { Event } from "./events.js";
import type { DownloadBegun, DownloadId, DownloadProgress } from "./frames.js";
import type { EntityId } from "./world.js";

/** Minimum milliseconds between two answers to chunks. Chunks come in slots of that length. */
const ANSWERED_EVERY = 100;
/** Maximum whole downloads that are remembered. */
const MAX_WHOLE = 16;

interface Partial {
  readonly begun: DownloadBegun;
  readonly chunks: Uint8Array[];
  received: number;
  answered: number;
  /** When the next answer is due; `Infinity` if no chunks came after the last one. */
  answerDue: number;
}

/**
 * Downloads: content that a base sends beside play, one at a time. The content is not hashed here: what was kept is
 * continued only if the base names the same hash.
 */
export class Downloads {
  private partial: Partial | undefined;
  /** The newest whole ones: the base may begin one again if it did not learn that it is whole. */
  private readonly whole: DownloadBegun[] = [];

  constructor(private readonly emit: (event: Event) => void) {}

  /** Takes the beginning of a download on this connection; returns the answer. */
  begun(now: number, begun: DownloadBegun): DownloadProgress {
    if (this.whole.some((one) => isSame(one, begun))) {
      return { id: begun.id, upto: begun.size };
    }
    const before = this.partial;
    if (before !== undefined && !isId(before.begun.id, begun.id)) {
      this.emit({ kind: "downloadEnded", id: before.begun.id });
    }
    const isKept = before !== undefined && isSame(before.begun, begun);
    const partial = isKept ? before : { begun, chunks: [], received: 0, answered: now, answerDue: Infinity };
    this.partial = partial;
    const answer = this.answerNow(now, partial);
    this.finish(partial);
    return answer;
  }

  /** Takes a chunk; returns an answer if one is due, and `"malformed"` if it exceeds the download's size. */
  take(now: number, id: DownloadId, offset: number, content: Uint8Array): DownloadProgress | "malformed" | undefined {
    const { partial } = this;
    if (partial === undefined || !isId(partial.begun.id, id)) {
      // It was under way when another download began.
      return undefined;
    }
    if (offset + content.length > partial.begun.size) {
      return "malformed";
    }
    if (offset !== partial.received) {
      // Chunks are not in order with other frames. After content was dropped with its entity, a chunk may come that was
      // sent before the base had the answer to the new beginning. That answer says what is missing.
      return undefined;
    }
    partial.chunks.push(content);
    partial.received += content.length;
    partial.answerDue = Math.min(partial.answerDue, partial.answered + ANSWERED_EVERY);
    if (partial.received < partial.begun.size) {
      return this.answer(now);
    }
    const answer = this.answerNow(now, partial);
    this.finish(partial);
    return answer;
  }

  /** The answer to chunks, if it is due. */
  answer(now: number): DownloadProgress | undefined {
    return this.partial !== undefined && this.partial.answerDue <= now ? this.answerNow(now, this.partial) : undefined;
  }

  /** When an answer is due. */
  deadline(): number {
    return this.partial?.answerDue ?? Infinity;
  }

  /** The connection is lost: nothing is said before the base names the download again. */
  pause(): void {
    if (this.partial !== undefined) {
      this.partial.answerDue = Infinity;
    }
  }

  /** The base sends no more of it. */
  ended(id: DownloadId): void {
    if (this.partial !== undefined && isId(this.partial.begun.id, id)) {
      this.partial = undefined;
      this.emit({ kind: "downloadEnded", id });
    }
  }

  /** The client controls this entity from now on, and gets its downloads. */
  controls(entity: EntityId): void {
    const id = this.partial?.begun.id;
    if (id !== undefined && id.entity !== entity) {
      this.ended(id);
    }
  }

  private answerNow(now: number, partial: Partial): DownloadProgress {
    const { id, description, size } = partial.begun;
    [partial.answered, partial.answerDue] = [now, Infinity];
    this.emit({ kind: "downloadProgressed", id, description, received: partial.received, size });
    return { id, upto: partial.received };
  }

  /** Ends the download if all of it is here. */
  private finish({ begun, chunks, received }: Partial): void {
    if (received < begun.size) {
      return;
    }
    const content = new Uint8Array(begun.size);
    let at = 0;
    for (const chunk of chunks) {
      content.set(chunk, at);
      at += chunk.length;
    }
    this.partial = undefined;
    this.whole.push(begun);
    if (this.whole.length > MAX_WHOLE) {
      this.whole.shift();
    }
    this.emit({ kind: "downloaded", id: begun.id, description: begun.description, content });
  }
}

function isId(one: DownloadId, other: DownloadId): boolean {
  return one.entity === other.entity && one.number === other.number;
}

function isSame(one: DownloadBegun, other: DownloadBegun): boolean {
  return isId(one.id, other.id) && one.size === other.size && one.hash === other.hash;
}
