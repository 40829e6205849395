import { writeMoved } from "./frames.js";
import type { EntityId, Place } from "./world.js";

/** Milliseconds of rest after which the last movement is sent again; doubled for each further time. */
const FIRST_REPEAT = 200;
/** How many times it is sent again. */
const REPEATS = 4;

/** The newest movement, until it has been sent often enough. */
interface LastMove {
  readonly entity: EntityId;
  readonly place: Place;
  readonly datagram: Uint8Array;
  repeats: number;
  againAt: number;
}

/**
 * The movements of the client's own entity, on their way to the cell. Each replaces the one before, so a lost datagram
 * does no harm while the entity moves. The last one before a rest is replaced by none: it is sent again, with its
 * sequence number, and the cell ignores what it has already.
 */
export class OwnMoves {
  private newest = 0n;
  private last: LastMove | undefined;

  /** The client moves its entity: returns the datagram. */
  make(now: number, entity: EntityId, place: Place): Uint8Array {
    this.newest += 1n;
    const datagram = writeMoved(this.newest, place);
    this.last = { entity, place, datagram, repeats: 0, againAt: now + FIRST_REPEAT };
    return datagram;
  }

  /**
   * The newest movement as a datagram, if it is due again. `placeOf` is where the client has an entity: one that the
   * server has placed elsewhere stays there.
   */
  due(now: number, placeOf: (entity: EntityId) => Place | undefined): Uint8Array | undefined {
    const { last } = this;
    if (last === undefined || last.againAt > now) {
      return undefined;
    }
    last.repeats += 1;
    last.againAt = now + FIRST_REPEAT * 2 ** last.repeats;
    const isThere = placeOf(last.entity) === last.place;
    if (!isThere || last.repeats === REPEATS) {
      this.last = undefined;
    }
    return isThere ? last.datagram : undefined;
  }

  deadline(): number {
    return this.last?.againAt ?? Infinity;
  }
}
