import { Malformed, type Reader, type Writer } from "./bytes.js";
import type { TypeDescription } from "./world.js";

/** Slots of properties and methods in messages to clients; 0, 1 and 2 have other meanings. */
const FIRST_SHOWN = 3;
const SHOWN_SLOTS = 256 - FIRST_SHOWN;

/**
 * The message ids of one kind of member. While there are no more members than slots, each has its own. Otherwise the
 * last slots are shared, by 256 members each and a second byte, or the last one by all others and two bytes.
 */
export class MessageRange {
  private readonly direct: number;
  private readonly shared: number;
  private readonly width: 1 | 2;

  constructor(
    private readonly first: number,
    slots: number,
    private readonly members: number,
  ) {
    const more = members - slots;
    const shared = more > 0 ? Math.floor(more / 255) + 1 : 0;
    this.width = shared <= slots ? 1 : 2;
    this.shared = shared <= slots ? shared : Math.min(slots, 1);
    this.direct = slots - this.shared;
  }

  has(id: number): boolean {
    return id >= this.first && id < this.first + this.direct + this.shared;
  }

  read(reader: Reader): number {
    const id = reader.u8("message id");
    const nth = id - this.first - this.direct;
    let member = id - this.first;
    if (nth >= 0) {
      member = this.width === 2 ? this.direct + reader.u16("message id") : this.direct + nth * 256 + reader.u8("message id");
    }
    if (!this.has(id) || member >= this.members) {
      throw new Malformed("message id");
    }
    return member;
  }

  write(writer: Writer, member: number): void {
    const beyond = member - this.direct;
    if (beyond < 0) {
      writer.u8(this.first + member);
      return;
    }
    writer.u8(this.first + this.direct + (beyond >> (8 * this.width))).u8(beyond & 255);
    if (this.width === 2) {
      writer.u8((beyond >> 8) & 255);
    }
  }
}

/** The ranges of the properties and of the methods of a type, in messages to clients. */
export function shownRanges(type: TypeDescription): { properties: MessageRange; methods: MessageRange } {
  const [properties, methods] = [type.properties.length, type.methods.length];
  const least = SHOWN_SLOTS - Math.floor(SHOWN_SLOTS / 2);
  const free = Math.max(SHOWN_SLOTS - methods, 0);
  const forProperties = Math.min(properties, Math.max(free, least));
  const forMethods = Math.min(methods, SHOWN_SLOTS - forProperties);
  return {
    properties: new MessageRange(FIRST_SHOWN, forProperties, properties),
    methods: new MessageRange(FIRST_SHOWN + forProperties, forMethods, methods),
  };
}

/** The range of the exposed methods of a part. */
export function callRange(exposed: number): MessageRange {
  return new MessageRange(0, 256, exposed);
}
