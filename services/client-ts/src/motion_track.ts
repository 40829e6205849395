/** What both ends of a connection predict of an entity's motion. Divisions round down, also below zero. */

/** Ticks without an update after which nothing is extrapolated. */
const LONGEST_REACH = 10;
/** Half of the range of coordinates, units. */
export const FARTHEST = 2 ** 30;
/** The greatest speed, 16ths of a unit per tick. */
const FASTEST = 2 ** 20;

/** The remainder of a division by a positive number, from 0 on. */
function modulo(number: number, by: number): number {
  return ((number % by) + by) % by;
}

/** A coordinate: place and speed in 16ths of a unit, and the size of a step, a power of two of units. */
export class Track {
  private constructor(
    private readonly at: number,
    private readonly speed: number,
    readonly exponent: number,
  ) {}

  static begin(step: number, exponent: number): Track {
    return new Track(step * 2 ** exponent * 16, 0, exponent);
  }

  /** Whether it hardly moves. */
  get isStill(): boolean {
    return Math.floor(Math.abs(this.speed) / 2 ** this.exponent) <= 2;
  }

  /** The predicted step of this size. */
  expect(ticks: number, exponent: number): number {
    const step = 2 ** (exponent + 4);
    return Math.floor((this.reckon(ticks) + step / 2) / step);
  }

  follow(ticks: number, step: number, exponent: number): Track {
    const reckoned = this.reckon(ticks);
    const missed = step * 2 ** exponent * 16 - reckoned;
    const before = ticks > LONGEST_REACH ? 0 : this.speed;
    const speed = before + Math.floor((missed * 6) / (8 * ticks));
    const limited = Math.max(-FASTEST, Math.min(FASTEST, speed));
    return new Track(reckoned + Math.floor((missed * 7) / 8), limited, exponent);
  }

  private reckon(ticks: number): number {
    return ticks > LONGEST_REACH ? this.at : this.at + this.speed * ticks;
  }
}

/** An angle in steps, of which a turn has a power of two, and its rate in 16ths of a step. */
export class Turn {
  private constructor(
    private readonly at: number,
    private readonly rate: number,
    private readonly bits: number,
  ) {}

  static begin(step: number, bits: number): Turn {
    return new Turn(step, 0, bits);
  }

  /** The class of angular speed, from still to fast. */
  get haste(): number {
    const rate = Math.abs(this.rate);
    return rate < 4 ? 0 : rate < 32 ? 1 : rate < 96 ? 2 : 3;
  }

  /** The step after this many ticks with this prediction error. */
  missed(ticks: number, missed: number): number {
    const turned = ticks > LONGEST_REACH ? 0 : Math.floor((this.rate * ticks + 8) / 16);
    return modulo(this.at + turned + missed, 2 ** this.bits);
  }

  follow(ticks: number, step: number): Turn {
    const before = ticks > LONGEST_REACH ? 0 : this.rate;
    const half = 2 ** (this.bits - 1);
    const turned = (modulo(step - this.at + half, 2 * half) - half) * 16;
    const rate = before + Math.floor(((Math.floor(turned / ticks) - before) * 6) / 8);
    return new Turn(step, rate, this.bits);
  }
}
