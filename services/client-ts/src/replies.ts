import { Malformed, type Reader, textOf } from "./bytes.js";
import type { EndReason } from "./events.js";
import { exposedOf } from "./exposed.js";
import { type CallRefusal, readPart } from "./frames.js";
import { callRange } from "./message_ids.js";
import { readValue } from "./values.js";
import type { Part, TypeDescription, Value } from "./world.js";

/** Maximum bytes of each text of an error. */
const MAX_ERROR_TEXT = 1 << 10;

/** Why the server answers a call with an error. */
export type ReplyFailure =
  /** The method does not allow it. */
  | { readonly kind: "authenticate"; readonly text: string }
  /** The receiver failed. */
  | { readonly kind: "internal"; readonly text: string }
  /** The arguments do not fit. */
  | { readonly kind: "invalidArgs"; readonly text: string }
  /** No answer came in time. The call may have run, or may run later. */
  | { readonly kind: "noReply" }
  | { readonly kind: "noSuchEntity" }
  | { readonly kind: "noSuchCellEntity" }
  /** An error of the game, with its name there. */
  | { readonly kind: "custom"; readonly name: string; readonly text: string };

/** Why a call has no return values. */
export type CallFailure =
  | ReplyFailure
  /** The call was taken, but not run. */
  | { readonly kind: "refused"; readonly reason: CallRefusal }
  /** The called part does not exist any more. The call may have run. */
  | { readonly kind: "lost" }
  /** The client has ended. The call may have run, or may run later. */
  | { readonly kind: "ended"; readonly reason: EndReason };

/** How the server answers a call. */
export type CallOutcome =
  /** The return values in the order of the definition. */
  | { readonly ok: true; readonly values: readonly Value[] }
  | { readonly ok: false; readonly failure: ReplyFailure };

/** The server's answer to a call of this client. */
export interface Reply {
  readonly kind: "reply";
  /** The called part. */
  readonly part: Part;
  /** The call's number. */
  readonly call: bigint;
  /** The client number of the exposed method. */
  readonly method: number;
  readonly outcome: CallOutcome;
}

/** Reads a reply of an entity of this type. */
export function readReply(reader: Reader, type: TypeDescription): Reply {
  const part = readPart(reader);
  const call = reader.number("call");
  const exposed = exposedOf(type, part);
  const method = callRange(exposed.length).read(reader);
  const returns = exposed[method]?.returns ?? [];
  if (reader.peek("outcome") === 0) {
    reader.u8("outcome");
    const values = returns.map(([, stream]) => readValue(reader, stream));
    return { kind: "reply", part, call, method, outcome: { ok: true, values } };
  }
  return { kind: "reply", part, call, method, outcome: { ok: false, failure: readFailure(reader) } };
}

function readFailure(reader: Reader): ReplyFailure {
  switch (reader.u8("outcome")) {
    case 1:
      return { kind: "authenticate", text: readText(reader) };
    case 2:
      return { kind: "internal", text: readText(reader) };
    case 3:
      return { kind: "invalidArgs", text: readText(reader) };
    case 4:
      return { kind: "noReply" };
    case 5:
      return { kind: "noSuchEntity" };
    case 6:
      return { kind: "noSuchCellEntity" };
    case 7:
      return { kind: "custom", name: readText(reader), text: readText(reader) };
    default:
      throw new Malformed("outcome");
  }
}

function readText(reader: Reader): string {
  const bytes = reader.blob("text of an error");
  if (bytes.length > MAX_ERROR_TEXT) {
    throw new Malformed("text of an error");
  }
  return textOf(bytes, "text of an error");
}
