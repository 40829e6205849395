import { Writer } from "./bytes.js";
import { CALL_OVERHEAD } from "./calls.js";
import { MAX_UPSTREAM_FRAME } from "./frames.js";
import { callRange } from "./message_ids.js";
import { Mismatch, writeValue } from "./values.js";
import type { CallDescription, Part, TypeDescription, Value } from "./world.js";

/** Why a call was not made. */
export class CallError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "CallError";
  }
}

/** A call as it is sent. */
export interface EncodedCall {
  /** The client number of the method. */
  readonly method: number;
  readonly described: CallDescription;
  readonly message: Uint8Array;
}

/** What clients can call of a part, by client number. */
export function exposedOf(type: TypeDescription, part: Part): readonly CallDescription[] {
  return part === "base" ? type.baseCalls : type.cellCalls;
}

/** Encodes a call of an entity of this type. Throws {@link CallError}. */
export function encodeCall(type: TypeDescription, part: Part, name: string, args: readonly Value[]): EncodedCall {
  const exposed = exposedOf(type, part);
  const method = exposed.findIndex((one) => one.name === name);
  const described = exposed[method];
  if (described === undefined) {
    throw new CallError(`${type.name} has no exposed ${part} method ${name}`);
  }
  if (described.args.length !== args.length) {
    throw new CallError(`${name} takes ${described.args.length} arguments, ${args.length} were given`);
  }
  const writer = new Writer();
  callRange(exposed.length).write(writer, method);
  described.args.forEach((stream, i) => {
    try {
      writeValue(writer, stream, args[i] as Value);
    } catch (error) {
      throw error instanceof Mismatch ? new CallError(`argument ${i + 1} of ${name}: ${error.message}`) : error;
    }
  });
  const message = writer.finish();
  if (message.length > MAX_UPSTREAM_FRAME - CALL_OVERHEAD) {
    throw new CallError(`the arguments of ${name} take ${message.length} bytes, more than fit a frame`);
  }
  return { method, described, message };
}
