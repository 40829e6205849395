// Two-way methods for several tests: a type that has some, and what a server sends about their calls.
import { bytesOf, module } from "./support.js";

const { Writer } = await module("bytes");

/** The entity that the client of the vectors controls. */
export const OWN = 1048577n;
const NUMBERS = { kind: "ARRAY", of: "UINT16", size: null };

export const TRADER = {
  id: 4,
  name: "Trader",
  properties: [{ name: "hp", declared: "hp", part: "base", stream: "UINT8", initial: "05" }],
  methods: [{ name: "onSay", declared: "onSay", args: ["UNICODE_STRING"] }],
  baseCalls: [
    { name: "ping", declared: "ping", args: ["UINT8"], ownOnly: true },
    {
      name: "buy",
      declared: "buy",
      args: ["UINT8"],
      ownOnly: true,
      returns: [["gold", "INT64"], ["__proto__", "UNICODE_STRING"]],
    },
    { name: "list", declared: "list", args: [], ownOnly: true, returns: [["items", NUMBERS]] },
  ],
  cellCalls: [{ name: "open", declared: "open", args: [], ownOnly: false, returns: [] }],
};

const PARTS = ["base", "cell"];
const BUY = 1;
const about = (kind, part, entity) => new Writer().u8(kind).u8(PARTS.indexOf(part)).number(entity);

/** An outcome: its code, and the texts behind it. */
export function failed(code, ...texts) {
  const writer = new Writer().u8(code);
  texts.forEach((text) => writer.text(text));
  return writer.finish();
}

/** The outcome of `buy`. */
export function bought(gold, note) {
  const text = Buffer.from(note);
  const bytes = Buffer.alloc(10 + text.length);
  bytes.writeBigInt64LE(gold, 1);
  bytes[9] = text.length;
  bytes.set(text, 10);
  return Uint8Array.from(bytes);
}

/** A reply as an event, after a gap unless that is 0. */
export function replyEvent(call, outcome, { part = "base", method = BUY, gap = 0 } = {}) {
  const writer = new Writer();
  if (gap > 0) {
    writer.u8(2).number(gap);
  }
  return writer.u8(2).u8(0).u8(PARTS.indexOf(part)).number(call).u8(method).raw(outcome).finish();
}

export const took = (upto, part = "base", entity = OWN) => about(1, part, entity).number(upto).finish();
export const gone = (part = "base", entity = OWN) => about(3, part, entity).finish();
export const refused = (call, reason, part = "base", entity = OWN) =>
  about(4, part, entity).number(call).u8(reason).finish();

/** The base view of the client's own entity, as frames. */
export class BaseView {
  constructor(view = 1) {
    Object.assign(this, { view, sequence: 0, history: 0 });
  }

  /** A frame with these events; the first one brings the entity into view. */
  frame(...events) {
    this.sequence += 1;
    const items = this.sequence === 1 && this.history === 0 ? 2 : 1;
    const writer = new Writer().u8(5).u8(0).number(this.view).number(this.sequence).number(9).number(items);
    if (items === 2) {
      writer.u8(1).number(OWN).number(TRADER.id).u8(0);
    }
    writer.u8(4).number(OWN).number(this.history).number(events.length);
    this.history += events.length;
    return writer.blob(Buffer.concat(events)).finish();
  }

  /** The view begins again on another connection, and continues the entity. */
  begin() {
    this.view += 1;
    this.sequence = 0;
  }
}

export const TICKET = bytesOf("login_answer", "ticket");
export const LOCATED = bytesOf("login_answer", "located");
export const WELCOME = bytesOf("hello_answer", "welcome");
