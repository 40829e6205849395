import { Malformed } from "./bytes.js";

/** Maximum bytes of a frame to a client: a value of the greatest length, and 1 MiB around it. */
const MAX_DOWNSTREAM_FRAME = 17 << 20;
/** Bytes of a length of that size. */
const LENGTH_BYTES = 4;
/** Bytes that are kept allocated between frames. */
const KEPT = 64 << 10;

/** Splits the bytes of a stream into frames. It holds no more than was received. */
export class FrameBuffer {
  private bytes = new Uint8Array(KEPT);
  private start = 0;
  private end = 0;

  /** Adds received bytes. Take all frames with {@link next} before the next ones are added. */
  push(received: Uint8Array): void {
    const held = this.bytes.subarray(this.start, this.end);
    const needed = held.length + received.length;
    if (needed > this.bytes.length) {
      const grown = new Uint8Array(Math.max(needed, 2 * held.length));
      grown.set(held);
      this.bytes = grown;
    } else {
      this.bytes.copyWithin(0, this.start, this.end);
    }
    this.bytes.set(received, held.length);
    [this.start, this.end] = [0, needed];
  }

  /** The next whole frame, without its length. Throws {@link Malformed} if its length is too large, or malformed. */
  next(): Uint8Array | undefined {
    const length = this.length();
    if (length === undefined || this.end - length.after < length.value) {
      return undefined;
    }
    const frame = this.bytes.slice(length.after, length.after + length.value);
    this.start = length.after + length.value;
    if (this.start === this.end && this.bytes.length > KEPT) {
      this.bytes = new Uint8Array(KEPT);
      [this.start, this.end] = [0, 0];
    }
    return frame;
  }

  /** The length of the next frame, and where its body begins; `undefined` if it is not complete. */
  private length(): { readonly value: number; readonly after: number } | undefined {
    let value = 0;
    for (let i = 0; i < LENGTH_BYTES; i++) {
      const at = this.start + i;
      if (at >= this.end) {
        return undefined;
      }
      const byte = this.bytes[at] ?? 0;
      value += (byte & 0x7f) * 2 ** (7 * i);
      if (byte < 0x80) {
        if (value > MAX_DOWNSTREAM_FRAME || (byte === 0 && i > 0)) {
          break;
        }
        return { value, after: at + 1 };
      }
    }
    throw new Malformed("length of a frame");
  }
}
