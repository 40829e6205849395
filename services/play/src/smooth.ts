/**
 * Smooth movements of others: places arrive some times per second, and are drawn a moment later, between the two places
 * around that moment.
 */
import type { Place } from "../../client-ts/src/index.js";

/** Milliseconds that are assumed between two places at first: a tick of a cell. */
const FIRST_INTERVAL = 100;
/** Milliseconds after which a new place is the start of a movement, not the next step of one. */
const PAUSE = 1_500;
/** Places are drawn so many intervals late, at least and at most so many milliseconds. */
const DELAY_INTERVALS = 1.6;
const MIN_DELAY = 120;
const MAX_DELAY = 900;
/** Metres between two places that nobody walks: it was put there. */
const LEAP = 25;
/** Maximum places kept. */
const MAX_SAMPLES = 24;

interface Sample {
  readonly at: number;
  readonly place: Place;
}

/** Where something is drawn. */
export interface Drawn {
  readonly x: number;
  readonly z: number;
  readonly yaw: number;
}

export class Track {
  private readonly samples: Sample[] = [];
  private interval = FIRST_INTERVAL;

  /** Notes the newest place that the client knows. */
  note(now: number, place: Place): void {
    const last = this.samples.at(-1);
    if (last?.place === place) {
      return;
    }
    if (last !== undefined) {
      const since = now - last.at;
      if (distance(last.place, place) > LEAP) {
        this.samples.length = 0;
      } else if (since > PAUSE) {
        // It stood: the movement begins now, not when it stopped.
        this.samples.push({ at: now - this.interval, place: last.place });
      } else {
        this.interval += (since - this.interval) * 0.2;
      }
    }
    this.samples.push({ at: now, place });
    if (this.samples.length > MAX_SAMPLES) {
      this.samples.shift();
    }
  }

  /** Where it is drawn; `undefined` before the first place. */
  at(now: number): Drawn | undefined {
    const moment = now - Math.min(MAX_DELAY, Math.max(MIN_DELAY, this.interval * DELAY_INTERVALS));
    const next = this.samples.findIndex(({ at }) => at > moment);
    const [before, after] = next < 0 ? [this.samples.at(-1)] : [this.samples[next - 1], this.samples[next]];
    if (before === undefined || after === undefined) {
      const only = before ?? after;
      return only && drawn(only.place);
    }
    const share = (moment - before.at) / (after.at - before.at);
    const [from, to] = [drawn(before.place), drawn(after.place)];
    return {
      x: from.x + (to.x - from.x) * share,
      z: from.z + (to.z - from.z) * share,
      yaw: from.yaw + turn(from.yaw, to.yaw) * share,
    };
  }
}

function drawn({ position, direction }: Place): Drawn {
  return { x: position.x, z: position.z, yaw: direction.yaw };
}

function distance(one: Place, other: Place): number {
  return Math.hypot(one.position.x - other.position.x, one.position.z - other.position.z);
}

/** The shorter way from one angle to another, radians. */
function turn(from: number, to: number): number {
  const way = (to - from) % (2 * Math.PI);
  return way > Math.PI ? way - 2 * Math.PI : way < -Math.PI ? way + 2 * Math.PI : way;
}
