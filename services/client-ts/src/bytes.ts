/** Bytes that are not what the protocol or the definitions allow at this point. */
export class Malformed extends Error {
  constructor(what: string) {
    super(`malformed ${what}`);
    this.name = "Malformed";
  }
}

const MAX_NUMBER = (1n << 64n) - 1n;
const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Reads bytes from the front; every method throws {@link Malformed} instead of reading beyond the end. */
export class Reader {
  private readonly view: DataView;

  constructor(
    readonly bytes: Uint8Array,
    public at = 0,
  ) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get remaining(): number {
    return this.bytes.length - this.at;
  }

  private advance(length: number, what: string): number {
    if (length > this.remaining) {
      throw new Malformed(what);
    }
    const start = this.at;
    this.at += length;
    return start;
  }

  u8(what: string): number {
    return this.view.getUint8(this.advance(1, what));
  }

  /** The next byte, without consuming it. */
  peek(what: string): number {
    if (this.remaining === 0) {
      throw new Malformed(what);
    }
    return this.view.getUint8(this.at);
  }

  u16(what: string): number {
    return this.view.getUint16(this.advance(2, what), true);
  }

  f32(what: string): number {
    return this.view.getFloat32(this.advance(4, what), true);
  }

  /** A float that is neither infinite nor NaN. */
  finite(what: string): number {
    const number = this.f32(what);
    if (!Number.isFinite(number)) {
      throw new Malformed(what);
    }
    return number;
  }

  /** A view of the next bytes as numbers. */
  take(length: number, what: string): DataView {
    const start = this.advance(length, what);
    return new DataView(this.bytes.buffer, this.bytes.byteOffset + start, length);
  }

  /** A copy of the next bytes. */
  raw(length: number, what: string): Uint8Array {
    const start = this.advance(length, what);
    return this.bytes.slice(start, start + length);
  }

  /** A LEB128 number of at most 64 bits in its shortest form. */
  number(what: string): bigint {
    let number = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = this.u8(what);
      number |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) {
        if (number > MAX_NUMBER || (byte === 0 && shift > 0n)) {
          throw new Malformed(what);
        }
        return number;
      }
      if (shift >= 63n) {
        throw new Malformed(what);
      }
    }
  }

  /** The same, below a limit of at most 2^53. */
  small(below: number, what: string): number {
    const number = this.number(what);
    if (number >= BigInt(below)) {
      throw new Malformed(what);
    }
    return Number(number);
  }

  /** Bytes behind their length. */
  blob(what: string): Uint8Array {
    return this.raw(this.small(2 ** 32, what), what);
  }

  option<T>(what: string, read: () => T): T | undefined {
    switch (this.u8(what)) {
      case 0:
        return undefined;
      case 1:
        return read();
      default:
        throw new Malformed(what);
    }
  }

  finish(what: string): void {
    if (this.remaining > 0) {
      throw new Malformed(`${what}: ${this.remaining} bytes follow`);
    }
  }
}

/** Text of UTF-8 bytes. */
export function textOf(bytes: Uint8Array, what: string): string {
  try {
    return UTF8.decode(bytes);
  } catch {
    throw new Malformed(what);
  }
}

/** Collects bytes. */
export class Writer {
  private bytes = new Uint8Array(64);
  private length = 0;

  private grow(by: number): number {
    const start = this.length;
    this.length += by;
    if (this.length > this.bytes.length) {
      const larger = new Uint8Array(Math.max(this.length, this.bytes.length * 2));
      larger.set(this.bytes);
      this.bytes = larger;
    }
    return start;
  }

  u8(byte: number): this {
    const start = this.grow(1);
    this.bytes[start] = byte;
    return this;
  }

  raw(bytes: Uint8Array): this {
    const start = this.grow(bytes.length);
    this.bytes.set(bytes, start);
    return this;
  }

  /** Room for so many bytes. */
  take(length: number): DataView {
    const start = this.grow(length);
    return new DataView(this.bytes.buffer, start, length);
  }

  f32(number: number): this {
    this.take(4).setFloat32(0, number, true);
    return this;
  }

  number(number: bigint | number): this {
    let left = BigInt(number);
    while (left >= 0x80n) {
      this.u8(Number(left & 0x7fn) | 0x80);
      left >>= 7n;
    }
    return this.u8(Number(left));
  }

  blob(bytes: Uint8Array): this {
    return this.number(bytes.length).raw(bytes);
  }

  text(text: string): this {
    return this.blob(new TextEncoder().encode(text));
  }

  finish(): Uint8Array {
    return this.bytes.slice(0, this.length);
  }
}

/** The hexadecimal digits of bytes. */
export function toHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The bytes of hexadecimal digits. */
export function fromHex(digits: string): Uint8Array {
  const bytes = new Uint8Array(digits.length / 2);
  bytes.forEach((_, i) => (bytes[i] = Number.parseInt(digits.slice(2 * i, 2 * i + 2), 16)));
  return bytes;
}
