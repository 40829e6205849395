import { AVERAGES } from "./averages.js";

/**
 * Reads the bits of predicted movements, as docs/movements.md specifies them. Every number is a whole one that a double
 * holds exactly, unless bytes are hostile: then it is too large for what it is used for, and refused there.
 */
export class RangeDecoder {
  private readonly chances = Uint16Array.from({ length: AVERAGES.length / 2 }, (_, i) =>
    Number.parseInt(AVERAGES.slice(2 * i, 2 * i + 2), 16) * 16 + 8,
  );
  private taken = 0;
  private code = 0;
  private range = 0xffff_ffff;

  constructor(private readonly bytes: Uint8Array) {
    for (let i = 0; i < 4; i++) {
      this.shift();
    }
  }

  /** Whether these could be all bytes of a body: none is left over, and none is a trailing zero. */
  get isWhole(): boolean {
    return this.bytes.length <= this.taken && this.bytes.at(-1) !== 0;
  }

  /** A bit with the chance of its context, which adapts to it. */
  bit(context: number): boolean {
    const chance = this.chances[context] ?? EVEN;
    const bit = this.take(chance);
    this.chances[context] = bit ? chance - (chance >> PACE) : chance + ((4_096 - chance) >> PACE);
    return bit;
  }

  /** A number of so many bits, up to 32, all equally likely. */
  even(bits: number): number {
    let found = 0;
    for (let i = 0; i < bits; i++) {
      found = found * 2 + Number(this.take(EVEN));
    }
    return found;
  }

  /** The same of up to 64 bits. */
  evenLarge(bits: number): bigint {
    const high = Math.max(0, bits - 32);
    return (BigInt(this.even(high)) << BigInt(bits - high)) | BigInt(this.even(bits - high));
  }

  /** A number from 1 on. */
  size(first: number): number {
    let bits = 0;
    while (bits < 62 && this.bit(first + Math.min(bits, LENGTHS - 1))) {
      bits++;
    }
    if (bits === 0) {
      return 1;
    }
    let found = 2 + Number(this.bit(first + LENGTHS + Math.min(bits, TOPS) - 1));
    for (let i = 1; i < bits; i++) {
      found = found * 2 + Number(this.take(EVEN));
    }
    return found;
  }

  signed(first: number): number {
    if (!this.bit(first)) {
      return 0;
    }
    const isNegative = this.bit(first + 1);
    const size = this.size(first + 2);
    return isNegative ? -size : size;
  }

  /** A number of so many bits, each with a context chosen by those before it. */
  tree(first: number, bits: number): number {
    let node = 1;
    for (let i = 0; i < bits; i++) {
      node = node * 2 + Number(this.bit(first + node - 1));
    }
    return node - 2 ** bits;
  }

  private shift(): void {
    this.code = ((this.code << 8) | (this.bytes[this.taken] ?? 0)) >>> 0;
    this.taken++;
  }

  private take(chance: number): boolean {
    const bound = (this.range >>> CHANCE_BITS) * chance;
    const bit = this.code >= bound;
    if (bit) {
      this.code -= bound;
      this.range -= bound;
    } else {
      this.range = bound;
    }
    while (this.range < 2 ** 24) {
      this.shift();
      this.range = (this.range << 8) >>> 0;
    }
    return bit;
  }
}

const CHANCE_BITS = 12;
/** The chance of a bit whose values are equally likely. */
const EVEN = 2_048;
/** A chance moves towards the actual bit by a 32nd of the difference. */
const PACE = 5;
/** Contexts of the length of a size, and of its highest bits. */
const LENGTHS = 8;
const TOPS = 3;

/** The contexts of bits, by subject. */
const SIZE = LENGTHS + TOPS;
const SIGNED = 2 + SIZE;
const EXPONENTS = 8;
const GAP = 1;
const IS_NEW = GAP + SIZE;
const AGE = IS_NEW + 1;
const PARTS_DIFFER = AGE + SIZE;
const PARTS = PARTS_DIFFER + 1;
const EXPONENT = PARTS + 15;
const NEW = EXPONENT + 2 * SIGNED;
const ORIGIN = NEW + 2 * SIGNED;
const MISSED = ORIGIN + SIGNED;
const MISSED_UP = MISSED + EXPONENTS * 2 * 3 * SIGNED;
const TURNED = MISSED_UP + 2 * SIGNED;

export const CONTEXT = {
  hasOrigin: 0,
  gap: GAP,
  isNew: IS_NEW,
  age: AGE,
  partsDiffer: PARTS_DIFFER,
  parts: PARTS,
  origin: ORIGIN,
  /** The difference of the step from the previous one. */
  exponent: (isUp: boolean) => EXPONENT + Number(isUp) * SIGNED,
  /** A coordinate without known state. */
  begun: (isUp: boolean) => NEW + Number(isUp) * SIGNED,
  /** The prediction error, east and north. `surprise` is that of the axis before: 0 for none before, 1 as predicted. */
  missed: (exponent: number, isStill: boolean, surprise: number) =>
    MISSED + ((Math.min(exponent, EXPONENTS - 1) * 2 + Number(isStill)) * 3 + surprise) * SIGNED,
  missedUp: (isStill: boolean) => MISSED_UP + Number(isStill) * SIGNED,
  /** The prediction error of yaw, pitch or roll. */
  turned: (angle: number, haste: number) =>
    TURNED + (angle === 0 ? haste : 2 + 2 * angle + Math.min(haste, 1)) * SIGNED,
} as const;
