/** The id of an entity. */
export type EntityId = bigint;

/** The part of an entity. */
export type Part = "base" | "cell";

/** A step of a path into a value: an element by its index, a field by its name. */
export type Step = number | string;

/**
 * The encoding of a value. A length or count is one byte below 255, else ff and three bytes; everything is
 * little-endian.
 */
export type Stream =
  | "INT8" | "INT16" | "INT32" | "INT64" | "UINT8" | "UINT16" | "UINT32" | "UINT64"
  | "FLOAT32" | "FLOAT64" | "STRING" | "UNICODE_STRING" | "BLOB"
  | "VECTOR2" | "VECTOR3" | "VECTOR4" | "MAILBOX" | "UDO_REF" | "OPAQUE"
  | { readonly kind: "ARRAY" | "TUPLE"; readonly of: Stream; readonly size: number | null }
  | {
      readonly kind: "FIXED_DICT";
      readonly allowNone: boolean;
      readonly fields: readonly (readonly [name: string, stream: Stream])[];
    };

/**
 * A value. 64-bit integers are `bigint`, text is `string`, bytes are `Uint8Array`, vectors are lists of numbers, and a
 * mailbox is always `null`.
 */
export type Value = number | bigint | string | Uint8Array | null | Value[] | { [field: string]: Value };

/** A property that clients see; its place in the list is its client number. */
export interface PropertyDescription {
  readonly name: string;
  readonly declared: string;
  readonly part: Part;
  readonly stream: Stream;
  /** The encoded value that an entity has at first, in hexadecimal digits. */
  readonly initial: string;
}

/** A client method; its place in the list is its client number. */
export interface MethodDescription {
  readonly name: string;
  readonly declared: string;
  readonly args: readonly Stream[];
}

/** An exposed method; its place in the list is its client number. */
export interface CallDescription extends MethodDescription {
  readonly ownOnly: boolean;
  /** The return values in the order of the definition; only of a two-way method. */
  readonly returns?: readonly (readonly [name: string, stream: Stream])[];
}

/** A type as clients see it. */
export interface TypeDescription {
  readonly id: number;
  readonly name: string;
  readonly properties: readonly PropertyDescription[];
  readonly methods: readonly MethodDescription[];
  readonly baseCalls: readonly CallDescription[];
  readonly cellCalls: readonly CallDescription[];
}

/** A position, metres. */
export interface Position {
  readonly x: number;
  readonly y: number;
  readonly z: number;
}

/** A direction, radians. */
export interface Direction {
  readonly yaw: number;
  readonly pitch: number;
  readonly roll: number;
}

export interface Place {
  readonly position: Position;
  readonly direction: Direction;
}
