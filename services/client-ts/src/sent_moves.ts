import { writeDrove, writeMoved } from "./frames.js";
import type { EntityId, Place } from "./world.js";

/** Milliseconds of rest after which the last movement is sent again; doubled for each further time. */
const FIRST_REPEAT = 200;
/** How many times it is sent again. */
const REPEATS = 4;

/** The newest movement of an entity, until it has been sent often enough. */
interface LastMove {
  readonly place: Place;
  readonly datagram: Uint8Array;
  repeats: number;
  againAt: number;
}

/**
 * The movements of the client's own entity, and of others that it drives, on their way to the cell. Each replaces the
 * one before, so a lost datagram does no harm while the entity moves. The last one before a rest is replaced by none:
 * it is sent again, with its sequence number, and the cell ignores what it has already.
 */
export class SentMoves {
  private newest = 0n;
  private readonly last = new Map<EntityId, LastMove>();

  /** The client moves its own entity: returns the datagram. */
  makeOwn(now: number, entity: EntityId, place: Place): Uint8Array {
    this.newest += 1n;
    return this.keep(now, entity, place, writeMoved(this.newest, place));
  }

  /** The client moves another entity, which it was shown up to that history number: returns the datagram. */
  makeDriven(now: number, entity: EntityId, upto: bigint, place: Place): Uint8Array {
    this.newest += 1n;
    return this.keep(now, entity, place, writeDrove(this.newest, { entity, upto }, place));
  }

  private keep(now: number, entity: EntityId, place: Place, datagram: Uint8Array): Uint8Array {
    this.last.set(entity, { place, datagram, repeats: 0, againAt: now + FIRST_REPEAT });
    return datagram;
  }

  /**
   * The newest movements that are due again, as datagrams. `placeOf` is where the client has an entity that it moves:
   * one that the server has placed elsewhere stays there.
   */
  due(now: number, placeOf: (entity: EntityId) => Place | undefined): Uint8Array[] {
    const due: Uint8Array[] = [];
    for (const [entity, last] of this.last) {
      if (last.againAt > now) {
        continue;
      }
      last.repeats += 1;
      last.againAt = now + FIRST_REPEAT * 2 ** last.repeats;
      const isThere = placeOf(entity) === last.place;
      if (isThere) {
        due.push(last.datagram);
      }
      if (!isThere || last.repeats === REPEATS) {
        this.last.delete(entity);
      }
    }
    return due;
  }

  /** The client controls another entity: nothing is sent again. */
  clear(): void {
    this.last.clear();
  }

  deadline(): number {
    return Math.min(Infinity, ...[...this.last.values()].map((last) => last.againAt));
  }
}
