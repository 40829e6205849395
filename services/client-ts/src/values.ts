import { Malformed, Reader, Writer, textOf } from "./bytes.js";
import type { Stream, Value } from "./world.js";

/** First byte of a length of 255 or more. */
const LONG_LENGTH = 255;
const MAX_LENGTH = 2 ** 24 - 1;
/** Maximum count of elements that may take no bytes. */
const MAX_EMPTY_ELEMENTS = 1024;
const MAILBOX_SIZE = 16;
const UDO_REF_SIZE = 16;

/** A value that does not fit its type. */
export class Mismatch extends Error {
  constructor(stream: Stream, value: unknown) {
    const wanted = typeof stream === "string" ? stream : stream.kind;
    super(`expected a value of type ${wanted}, found ${describe(value)}`);
    this.name = "Mismatch";
  }
}

function describe(value: unknown): string {
  if (value === null || value === undefined) {
    return String(value);
  }
  return typeof value === "object" ? (value.constructor?.name ?? "an object") : `${typeof value} ${String(value)}`;
}

interface Integer {
  readonly size: 1 | 2 | 4 | 8;
  readonly signed: boolean;
}

const INTEGERS: { readonly [stream: string]: Integer } = {
  INT8: { size: 1, signed: true },
  INT16: { size: 2, signed: true },
  INT32: { size: 4, signed: true },
  INT64: { size: 8, signed: true },
  UINT8: { size: 1, signed: false },
  UINT16: { size: 2, signed: false },
  UINT32: { size: 4, signed: false },
  UINT64: { size: 8, signed: false },
};

const VECTORS: { readonly [stream: string]: number } = { VECTOR2: 2, VECTOR3: 3, VECTOR4: 4 };

function readLength(reader: Reader): number {
  const first = reader.u8("length");
  if (first !== LONG_LENGTH) {
    return first;
  }
  const long = reader.u16("length") | (reader.u8("length") << 16);
  if (long < LONG_LENGTH) {
    throw new Malformed("length");
  }
  return long;
}

function writeLength(writer: Writer, length: number): void {
  if (length < LONG_LENGTH) {
    writer.u8(length);
  } else {
    writer.u8(LONG_LENGTH).u8(length & 255).u8((length >> 8) & 255).u8(length >> 16);
  }
}

function readInteger(reader: Reader, { size, signed }: Integer): number | bigint {
  const view = reader.take(size, "integer");
  switch (size) {
    case 1:
      return signed ? view.getInt8(0) : view.getUint8(0);
    case 2:
      return signed ? view.getInt16(0, true) : view.getUint16(0, true);
    case 4:
      return signed ? view.getInt32(0, true) : view.getUint32(0, true);
    case 8:
      return signed ? view.getBigInt64(0, true) : view.getBigUint64(0, true);
  }
}

/** Whether a value may take no bytes. */
function mayBeEmpty(stream: Stream): boolean {
  if (typeof stream === "string") {
    return false;
  }
  if (stream.kind === "FIXED_DICT") {
    return !stream.allowNone && stream.fields.every(([, field]) => mayBeEmpty(field));
  }
  return stream.size !== null && (stream.size === 0 || mayBeEmpty(stream.of));
}

function readElements(reader: Reader, of: Stream, count: number): Value[] {
  const most = mayBeEmpty(of) ? MAX_EMPTY_ELEMENTS : reader.remaining;
  if (count > most) {
    throw new Malformed("count");
  }
  const values: Value[] = [];
  for (let i = 0; i < count; i++) {
    values.push(readValue(reader, of));
  }
  return values;
}

/** Maximum length of an array of such elements. */
export function longest(of: Stream): number {
  return mayBeEmpty(of) ? MAX_EMPTY_ELEMENTS : MAX_LENGTH;
}

/** Reads elements behind their count. */
export function readCounted(reader: Reader, of: Stream): Value[] {
  return readElements(reader, of, readLength(reader));
}

/** Reads a value. Allocates no more than a fixed multiple of the bytes that are there. */
export function readValue(reader: Reader, stream: Stream): Value {
  if (typeof stream !== "string") {
    if (stream.kind !== "FIXED_DICT") {
      return readElements(reader, stream.of, stream.size ?? readLength(reader));
    }
    if (stream.allowNone) {
      const marker = reader.u8("marker");
      if (marker > 1) {
        throw new Malformed("marker");
      }
      if (marker === 0) {
        return null;
      }
    }
    return Object.fromEntries(stream.fields.map(([name, field]) => [name, readValue(reader, field)]));
  }
  const integer = INTEGERS[stream];
  if (integer !== undefined) {
    return readInteger(reader, integer);
  }
  const axes = VECTORS[stream];
  if (axes !== undefined) {
    return Array.from({ length: axes }, () => reader.f32("vector"));
  }
  switch (stream) {
    case "FLOAT32":
      return reader.f32("float");
    case "FLOAT64":
      return reader.take(8, "float").getFloat64(0, true);
    case "UNICODE_STRING":
      return textOf(reader.raw(readLength(reader), "text"), "text");
    case "UDO_REF":
      return reader.raw(UDO_REF_SIZE, "reference");
    case "MAILBOX":
      // Clients have no use for an address, and are sent none.
      if (reader.raw(MAILBOX_SIZE, "mailbox").some((byte) => byte !== 0)) {
        throw new Malformed("mailbox");
      }
      return null;
    default:
      return reader.raw(readLength(reader), "bytes");
  }
}

function writeInteger(writer: Writer, stream: Stream, { size, signed }: Integer, value: Value): void {
  const bits = BigInt(size * 8);
  const number = typeof value === "number" && Number.isInteger(value) ? BigInt(value) : value;
  if (typeof number !== "bigint" || number !== (signed ? BigInt.asIntN : BigInt.asUintN)(Number(bits), number)) {
    throw new Mismatch(stream, value);
  }
  for (let shift = 0n; shift < bits; shift += 8n) {
    writer.u8(Number((number >> shift) & 255n));
  }
}

function writeBytes(writer: Writer, stream: Stream, bytes: Uint8Array): void {
  if (bytes.length > MAX_LENGTH) {
    throw new Mismatch(stream, bytes);
  }
  writeLength(writer, bytes.length);
  writer.raw(bytes);
}

function writeSequence(
  writer: Writer,
  stream: Extract<Stream, { kind: "ARRAY" | "TUPLE" }>,
  value: Value,
): void {
  const most = longest(stream.of);
  if (!Array.isArray(value) || value.length !== (stream.size ?? value.length) || value.length > most) {
    throw new Mismatch(stream, value);
  }
  if (stream.size === null) {
    writeLength(writer, value.length);
  }
  // Not `forEach`, which skips holes.
  for (const element of value) {
    writeValue(writer, stream.of, element);
  }
}

function writeDict(writer: Writer, stream: Extract<Stream, { kind: "FIXED_DICT" }>, value: Value): void {
  if (stream.allowNone) {
    writer.u8(value === null ? 0 : 1);
    if (value === null) {
      return;
    }
  }
  if (typeof value !== "object" || value === null || Array.isArray(value) || value instanceof Uint8Array) {
    throw new Mismatch(stream, value);
  }
  for (const [name, field] of stream.fields) {
    const found = value[name];
    if (found === undefined) {
      throw new Mismatch(field, found);
    }
    writeValue(writer, field, found);
  }
}

/** Appends a value; throws {@link Mismatch} if it does not fit the type. */
export function writeValue(writer: Writer, stream: Stream, value: Value): void {
  if (typeof stream !== "string") {
    return stream.kind === "FIXED_DICT" ? writeDict(writer, stream, value) : writeSequence(writer, stream, value);
  }
  const integer = INTEGERS[stream];
  if (integer !== undefined) {
    return writeInteger(writer, stream, integer, value);
  }
  const axes = VECTORS[stream];
  if (axes !== undefined) {
    const parts = Array.isArray(value) ? Array.from(value) : [];
    if (parts.length !== axes || !parts.every((axis) => typeof axis === "number")) {
      throw new Mismatch(stream, value);
    }
    return parts.forEach((axis) => writer.f32(axis as number));
  }
  switch (stream) {
    case "FLOAT32":
    case "FLOAT64":
      if (typeof value !== "number") {
        throw new Mismatch(stream, value);
      }
      return stream === "FLOAT32" ? void writer.f32(value) : writer.take(8).setFloat64(0, value, true);
    case "UNICODE_STRING":
      if (typeof value !== "string") {
        throw new Mismatch(stream, value);
      }
      return writeBytes(writer, stream, new TextEncoder().encode(value));
    case "MAILBOX":
      if (value !== null) {
        throw new Mismatch(stream, value);
      }
      return void writer.raw(new Uint8Array(MAILBOX_SIZE));
    default:
      if (!(value instanceof Uint8Array) || (stream === "UDO_REF" && value.length !== UDO_REF_SIZE)) {
        throw new Mismatch(stream, value);
      }
      return stream === "UDO_REF" ? void writer.raw(value) : writeBytes(writer, stream, value);
  }
}
