import { Malformed, Reader } from "./bytes.js";
import { FARTHEST, Track, Turn } from "./motion_track.js";
import { CONTEXT, RangeDecoder } from "./range_decoder.js";
import type { EntityId, Place } from "./world.js";

/** The first byte of a datagram of predicted movements. */
export const PREDICTED = 2;
/** Slots of entities, each of which keeps so many states. */
const MAX_SLOTS = 1_024;
const KEPT = 32;
/** Ticks after which a state is not referred to. */
const LONGEST_MEMORY = 4_096;
/** Read ticks that are remembered before the newest. */
const REMEMBERED = 64;
/** The numbers of placings: all coordinates, without the height, and exact ones. */
const FULL = 0;
const GROUND = 1;
const EXACT = 3;
/** Bits of the steps of yaw, pitch and roll. */
const TURN_BITS = [8, 9, 8] as const;
const UP = 2;

/** What a datagram says of an entity; `undefined` is what was not sent. */
export interface Motion {
  readonly entity: EntityId;
  /** East, up and north. */
  readonly position: readonly (number | undefined)[];
  /** Yaw, pitch and roll. */
  readonly direction: readonly (number | undefined)[];
}

export interface PredictedMoves {
  readonly tick: bigint;
  readonly motions: readonly Motion[];
}

/** The newest read ticks: the low half-word of the newest one, and a bit for each of those before it. */
export interface MovementAck {
  readonly tick: number;
  readonly before: number;
}

/** The state of an entity that both ends have after an update. */
interface State {
  readonly tick: number;
  readonly entity: EntityId;
  readonly placing: number;
  readonly facing: number;
  readonly axes: readonly Track[];
  readonly angles: readonly Turn[];
}

interface Entry {
  readonly slot: number;
  readonly state: State;
  readonly motion: Motion;
}

/** A datagram that is being read. */
interface Body {
  readonly coder: RangeDecoder;
  readonly tick: number;
  /** The newest acknowledged tick. */
  readonly base: number | undefined;
  readonly origin: readonly number[] | undefined;
}

/** It builds on a state that is not kept any more, or was read before. It counts as lost. */
class Late extends Error {}

/** Reads the predicted movements of one view. It keeps a bounded number of states, whatever it receives. */
export class PredictedReader {
  private readonly slots = new Map<number, State[]>();
  private newest: number | undefined;
  /** Which ticks before the newest were read, the nearest in the lowest bit. */
  private before = 0n;

  constructor(
    private readonly view: bigint,
    /** Metres per unit of the packing. */
    private readonly scale: number,
  ) {}

  /**
   * Reads a datagram; `now` is the tick of any frame of the view. Returns `undefined` if it is of another view, late or
   * a duplicate. Throws {@link Malformed}. The state is unchanged in both cases.
   */
  read(bytes: Uint8Array, now: bigint): PredictedMoves | undefined {
    const reader = new Reader(bytes);
    if (reader.u8("movements") !== PREDICTED) {
      throw new Malformed("movements");
    }
    if (reader.number("view") !== this.view) {
      return undefined;
    }
    const tick = nearest(reader.u16("tick"), Math.max(Number(now), this.newest ?? 0));
    const acknowledged = reader.u8("acknowledged tick");
    const count = reader.small(MAX_SLOTS + 1, "movements");
    if (count === 0 || acknowledged > tick) {
      throw new Malformed("movements");
    }
    if (this.hasRead(tick)) {
      return undefined;
    }
    const coder = new RangeDecoder(reader.raw(reader.remaining, "movements"));
    try {
      const entries = this.entries(coder, [tick, acknowledged === 0 ? undefined : tick - acknowledged], count);
      if (!coder.isWhole) {
        throw new Malformed("movements");
      }
      entries.forEach(({ slot, state }) => this.keep(slot, state));
      this.note(tick);
      return { tick: BigInt(tick), motions: entries.map(({ motion }) => motion) };
    } catch (error) {
      if (error instanceof Late) {
        return undefined;
      }
      throw error;
    }
  }

  /** The acknowledgement to send; `undefined` before any datagram was read. */
  ack(): MovementAck | undefined {
    return this.newest === undefined
      ? undefined
      : { tick: this.newest % 65_536, before: Number(this.before & 0xffffn) };
  }

  private entries(coder: RangeDecoder, [tick, base]: readonly [number, number | undefined], count: number): Entry[] {
    const hasOrigin = coder.bit(CONTEXT.hasOrigin);
    const origin = hasOrigin ? [0, 1, 2].map(() => coder.signed(CONTEXT.origin)) : undefined;
    const body = { coder, tick, base, origin };
    const entries: Entry[] = [];
    let slot = -1;
    for (let i = 0; i < count; i++) {
      slot += coder.size(CONTEXT.gap);
      if (slot >= MAX_SLOTS) {
        throw new Malformed("slot of a movement");
      }
      const isNew = coder.bit(CONTEXT.isNew);
      entries.push({ slot, ...this.entry(body, isNew ? undefined : this.known(body, slot)) });
    }
    return entries;
  }

  /** The state on which an update builds. */
  private known({ coder, tick, base }: Body, slot: number): State {
    const age = coder.size(CONTEXT.age) - 1;
    const then = (base ?? -1) - age;
    if (then < 0 || tick - then >= LONGEST_MEMORY) {
      throw new Malformed("age of a movement");
    }
    const known = this.slots.get(slot)?.find((state) => state.tick === then);
    if (known === undefined) {
      throw new Late();
    }
    return known;
  }

  private entry(body: Body, before: State | undefined): { readonly state: State; readonly motion: Motion } {
    const { coder, tick } = body;
    const entity = before?.entity ?? coder.evenLarge(Math.min(coder.even(7), 64));
    const [placing, facing] = parts(coder, before);
    const ticks = before === undefined ? 1 : tick - before.tick;
    const axes: Track[] = [];
    const steps: number[] = [];
    let surprise = 0;
    for (let axis = 0; axis < axesSent(placing); axis++) {
      const known = before?.axes[axis];
      const found = known === undefined ? begin(body, axis) : goOn(coder, known, { axis, ticks, surprise });
      surprise = found.surprise ?? surprise;
      axes.push(found.track);
      steps.push(found.units);
    }
    const exact = placing === EXACT ? [0, 1, 2].map(() => floatOf(coder.even(32))) : undefined;
    const angles: Turn[] = [];
    const direction: number[] = [];
    for (let angle = 0; angle < 3 - facing; angle++) {
      const bits = TURN_BITS[angle] ?? 8;
      const known = before?.angles[angle];
      const step =
        known === undefined
          ? coder.even(bits)
          : known.missed(ticks, coder.signed(CONTEXT.turned(angle, known.haste)));
      angles.push(known === undefined ? Turn.begin(step, bits) : known.follow(ticks, step));
      direction.push(radians(step, bits));
    }
    const [east, north, up] = exact ?? steps.map((units, axis) => this.metres(units, axis));
    const position = [east, up, north];
    if (![...position, ...direction].every((part) => part === undefined || Number.isFinite(part))) {
      throw new Malformed("movement");
    }
    const padded = [0, 1, 2].map((angle) => direction[angle]);
    return { state: { tick, entity, placing, facing, axes, angles }, motion: { entity, position, direction: padded } };
  }

  private metres(units: number, axis: number): number {
    return Math.fround(units * (axis === UP ? 1 / 1_024 : this.scale / 128));
  }

  private keep(slot: number, state: State): void {
    const states = this.slots.get(slot) ?? [];
    const at = states.findIndex(({ tick }) => tick >= state.tick);
    states.splice(at < 0 ? states.length : at, 0, state);
    if (states.length > KEPT) {
      states.shift();
    }
    this.slots.set(slot, states);
  }

  private hasRead(tick: number): boolean {
    const ago = (this.newest ?? -1) - tick;
    return ago === 0 || ago > REMEMBERED || (ago > 0 && ((this.before >> BigInt(ago - 1)) & 1n) === 1n);
  }

  private note(tick: number): void {
    const by = tick - (this.newest ?? tick);
    if (by > 0) {
      const moved = by > REMEMBERED ? 0n : ((this.before << 1n) | 1n) << BigInt(by - 1);
      this.before = BigInt.asUintN(REMEMBERED, moved);
    } else if (by < 0) {
      this.before |= 1n << BigInt(-by - 1);
    }
    this.newest = Math.max(tick, this.newest ?? tick);
  }
}

/** The place of an entity after a motion: what was not sent stays. */
export function moved(place: Place | undefined, { position, direction }: Motion): Place {
  const before = place ?? { position: { x: 0, y: 0, z: 0 }, direction: { yaw: 0, pitch: 0, roll: 0 } };
  const { position: at, direction: to } = before;
  const [x = at.x, y = at.y, z = at.z] = position;
  const [yaw = to.yaw, pitch = to.pitch, roll = to.roll] = direction;
  return { position: { x, y, z }, direction: { yaw, pitch, roll } };
}

/** The tick with this low half-word that is nearest to another. */
function nearest(low: number, to: number): number {
  const ahead = (low - (to % 65_536) + 65_536) % 65_536;
  return Math.max(0, to + (ahead < 32_768 ? ahead : ahead - 65_536));
}

/** Number of coordinates that a placing gives in steps. */
function axesSent(placing: number): number {
  return placing === FULL ? 3 : placing === GROUND ? 2 : 0;
}

/** The numbers of the placing and the facing. */
function parts(coder: RangeDecoder, before: State | undefined): readonly [number, number] {
  if (before !== undefined && !coder.bit(CONTEXT.partsDiffer)) {
    return [before.placing, before.facing];
  }
  const found = coder.tree(CONTEXT.parts, 4);
  const [placing, facing] = [found >> 2, found & 3];
  const isNothing = placing === 2 && facing === 3;
  if (isNothing || (before?.placing === placing && before.facing === facing)) {
    throw new Malformed("parts of a movement");
  }
  return [placing, facing];
}

/** A coordinate: its track, its distance from zero in units, and if it was predicted, whether rightly (1) or not. */
interface Coordinate {
  readonly track: Track;
  readonly units: number;
  readonly surprise: 1 | 2 | undefined;
}

/** A coordinate without known state. */
function begin({ coder, origin }: Body, axis: number): Coordinate {
  const from = origin?.[axis];
  if (from === undefined) {
    throw new Malformed("origin of a movement");
  }
  const base = Math.max(-FARTHEST, Math.min(FARTHEST, from)) * 128;
  const exponent = coder.even(4);
  const step = within(Math.floor(base / 2 ** exponent) + coder.signed(CONTEXT.begun(axis === UP)), exponent);
  return { track: Track.begin(step, exponent), units: step * 2 ** exponent, surprise: undefined };
}

/** A coordinate with known state. */
function goOn(
  coder: RangeDecoder,
  track: Track,
  { axis, ticks, surprise }: { readonly axis: number; readonly ticks: number; readonly surprise: number },
): Coordinate {
  const isUp = axis === UP;
  const exponent = track.exponent + coder.signed(CONTEXT.exponent(isUp));
  if (exponent < 0 || exponent > 15) {
    throw new Malformed("step of a movement");
  }
  const { isStill } = track;
  const context = isUp ? CONTEXT.missedUp(isStill) : CONTEXT.missed(exponent, isStill, surprise);
  const missed = coder.signed(context);
  const step = within(track.expect(ticks, exponent) + missed, exponent);
  const next = track.follow(ticks, step, exponent);
  return { track: next, units: step * 2 ** exponent, surprise: missed === 0 ? 1 : 2 };
}

function within(step: number, exponent: number): number {
  if (Math.abs(step) > Math.floor(FARTHEST / 2 ** exponent)) {
    throw new Malformed("coordinate of a movement");
  }
  return step;
}

function floatOf(bits: number): number {
  const view = new DataView(new ArrayBuffer(4));
  view.setUint32(0, bits);
  return view.getFloat32(0);
}

function radians(step: number, bits: number): number {
  const half = 2 ** (bits - 1);
  const signed = ((step + half) % (2 * half)) - half;
  const turn = bits === 8 ? Math.fround(Math.PI) * 2 : Math.PI * 2;
  return Math.fround((signed * turn) / (2 * half));
}
