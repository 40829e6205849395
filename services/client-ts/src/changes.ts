import { Malformed, Reader, fromHex } from "./bytes.js";
import { MessageRange, shownRanges } from "./message_ids.js";
import { type Reply, readReply } from "./replies.js";
import { longest, readCounted, readValue } from "./values.js";
import type { Step, Stream, TypeDescription, Value } from "./world.js";

/** First bytes of messages that are not about a whole property or a method. A gap of 0 is the beginning of a reply. */
const NESTED = 0;
const SLICE = 1;
const GAP = 2;

/** What happened to an entity. */
export type Shown =
  /** A property has another value. */
  | { readonly kind: "set"; readonly property: number; readonly old: Value }
  /** A part of a property has another value. */
  | { readonly kind: "nested"; readonly property: number; readonly path: readonly Step[]; readonly old: Value }
  /** Elements of an array in a property were replaced: the new ones are those from `at` to before `end`. */
  | {
      readonly kind: "slice";
      readonly property: number;
      readonly path: readonly Step[];
      readonly at: number;
      readonly end: number;
      readonly old: readonly Value[];
    }
  /** A client method was called. */
  | { readonly kind: "method"; readonly method: number; readonly args: readonly Value[] }
  /** A call of this client was answered. */
  | Reply;

/** Reads bits, the most significant of each byte first. */
class Bits {
  private read = 0;

  constructor(private readonly reader: Reader) {}

  take(count: number): number {
    let number = 0;
    for (let i = 0; i < count; i++) {
      const byte = this.reader.bytes[this.reader.at + (this.read >> 3)];
      if (byte === undefined) {
        throw new Malformed("path");
      }
      number = number * 2 + ((byte >> (7 - (this.read & 7))) & 1);
      this.read++;
    }
    return number;
  }

  /** An index of one of so many parts. */
  index(parts: number): number {
    const index = this.take(bitsRequired(parts));
    if (index >= parts) {
      throw new Malformed("path");
    }
    return index;
  }

  /** Advances the reader behind the last byte, whose other bits must be zero. */
  finish(): void {
    if (this.take((8 - (this.read & 7)) & 7) !== 0) {
      throw new Malformed("path");
    }
    this.reader.at += this.read >> 3;
  }
}

/** Number of bits that distinguish so many values. */
function bitsRequired(count: number): number {
  return count <= 1 ? 0 : 32 - Math.clz32(count - 1);
}

/** A place in a property: where its value is kept, under which key, and its type. */
interface Spot {
  readonly holder: { [key: Step]: Value } | Value[];
  readonly key: Step;
  readonly stream: Stream;
}

function valueAt({ holder, key }: Spot): Value {
  return (holder as { [key: Step]: Value })[key] as Value;
}

function put({ holder, key }: Spot, value: Value): void {
  (holder as { [key: Step]: Value })[key] = value;
}

/** Takes one step further into a value. */
function step(bits: Bits, spot: Spot): Spot {
  const { stream } = spot;
  const value = valueAt(spot);
  if (typeof stream !== "string" && stream.kind === "ARRAY" && Array.isArray(value)) {
    return { holder: value, key: bits.index(value.length), stream: stream.of };
  }
  if (typeof stream !== "string" && stream.kind === "FIXED_DICT" && value !== null) {
    const [key, field] = stream.fields[bits.index(stream.fields.length)] ?? [];
    if (key !== undefined && field !== undefined) {
      return { holder: value as { [key: Step]: Value }, key, stream: field };
    }
  }
  throw new Malformed("path");
}

/** The gap that comes next, if one does; 0 if a reply does. */
function readGap(reader: Reader): bigint | undefined {
  if (reader.peek("message id") !== GAP) {
    return undefined;
  }
  reader.u8("message id");
  return reader.number("gap");
}

/** Decodes what is shown of entities of one type, and applies it to their values. */
export class Shower {
  private readonly properties: MessageRange;
  private readonly methods: MessageRange;

  constructor(private readonly type: TypeDescription) {
    ({ properties: this.properties, methods: this.methods } = shownRanges(type));
  }

  /** The values of a new entity, by client number. */
  initial(): Value[] {
    return this.type.properties.map(({ stream, initial }) => readValue(new Reader(fromHex(initial)), stream));
  }

  /** Reads properties, ascending by client number. */
  readProperties(bytes: Uint8Array): Map<number, Value> {
    const reader = new Reader(bytes);
    const values = new Map<number, Value>();
    let before = -1;
    while (reader.remaining > 0) {
      const [property, value] = this.readProperty(reader);
      if (property <= before) {
        throw new Malformed("properties");
      }
      values.set(property, value);
      before = property;
    }
    return values;
  }

  /**
   * Applies events, each before the next one is read: a path is as long as the values that it leads through.
   * `onEach` is called with each and its history number.
   */
  apply(
    bytes: Uint8Array,
    [from, upto]: readonly [bigint, bigint],
    values: Value[],
    onEach: (number: bigint, shown: Shown) => void,
  ): void {
    const reader = new Reader(bytes);
    let number = from;
    while (reader.remaining > 0) {
      number += 1n;
      let gap = readGap(reader);
      if (gap !== undefined && gap > 0n) {
        number += gap;
        gap = readGap(reader);
      }
      if (number > upto || (gap !== undefined && gap > 0n)) {
        throw new Malformed("history number");
      }
      onEach(number, gap === 0n ? readReply(reader, this.type) : this.applyOne(reader, values));
    }
  }

  private applyOne(reader: Reader, values: Value[]): Shown {
    const id = reader.peek("message id");
    if (id === NESTED) {
      return this.applyNested(reader, values);
    }
    if (id === SLICE) {
      return this.applySlice(reader, values);
    }
    if (this.properties.has(id)) {
      const [property, value] = this.readProperty(reader);
      const old = values[property] as Value;
      values[property] = value;
      return { kind: "set", property, old };
    }
    const method = this.methods.read(reader);
    const args = (this.type.methods[method]?.args ?? []).map((stream) => readValue(reader, stream));
    return { kind: "method", method, args };
  }

  private readProperty(reader: Reader): [number, Value] {
    const property = this.properties.read(reader);
    const described = this.type.properties[property];
    if (described === undefined) {
      throw new Malformed("property");
    }
    return [property, readValue(reader, described.stream)];
  }

  private start(bits: Bits, values: Value[]): [number, Spot] {
    const property = bits.index(this.type.properties.length);
    const described = this.type.properties[property];
    if (described === undefined) {
      throw new Malformed("path");
    }
    return [property, { holder: values, key: property, stream: described.stream }];
  }

  private applyNested(reader: Reader, values: Value[]): Shown {
    reader.u8("message id");
    const bits = new Bits(reader);
    let more = bits.take(1) === 1;
    let [property, spot] = this.start(bits, values);
    const path: Step[] = [];
    if (!more) {
      throw new Malformed("path");
    }
    while (more) {
      more = bits.take(1) === 1;
      spot = step(bits, spot);
      path.push(spot.key);
    }
    bits.finish();
    const value = readValue(reader, spot.stream);
    const old = valueAt(spot);
    put(spot, value);
    return { kind: "nested", property, path, old };
  }

  private applySlice(reader: Reader, values: Value[]): Shown {
    reader.u8("message id");
    const bits = new Bits(reader);
    if (bits.take(1) === 0) {
      throw new Malformed("path");
    }
    let [property, spot] = this.start(bits, values);
    const path: Step[] = [];
    while (bits.take(1) === 1) {
      spot = step(bits, spot);
      path.push(spot.key);
    }
    const { stream } = spot;
    const array = valueAt(spot);
    if (typeof stream === "string" || stream.kind !== "ARRAY" || !Array.isArray(array)) {
      throw new Malformed("path");
    }
    const width = bitsRequired(array.length + 1);
    const [at, before] = [bits.take(width), bits.take(width)];
    if (at > before || before > array.length) {
      throw new Malformed("slice");
    }
    bits.finish();
    const inserted = readCounted(reader, stream.of);
    const length = array.length - (before - at) + inserted.length;
    if (stream.size === null ? length > longest(stream.of) : length !== stream.size) {
      throw new Malformed("slice");
    }
    const old = array.slice(at, before);
    put(spot, [...array.slice(0, at), ...inserted, ...array.slice(before)]);
    return { kind: "slice", property, path, at, end: at + inserted.length, old };
  }
}
