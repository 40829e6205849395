import { Malformed, Reader, Writer, fromHex, textOf, toHex } from "./bytes.js";
import type { MovementAck } from "./predicted.js";
import type { SpaceEntry, SpaceVersion } from "./space_data.js";
import type { Direction, EntityId, Part, Place, Position } from "./world.js";

/** SHA-256 of the protocol's grammar: both sides must have the same. */
export const PROTOCOL = "29b91562ce8533f5aa9e48a135d81f701f6e9f2ae45735bbecd419bad7a08058";

/** Maximum bytes of a frame from a client. */
export const MAX_UPSTREAM_FRAME = 64 << 10;

/** Maximum bytes of the reason for a ban. */
const MAX_BAN_REASON = 500;
/** The last moment that a `Date` can hold, ms since 1970. */
const LAST_DATE = 8.64e15;

/** Maximum bytes of a download, of its description, and of one chunk. */
const MAX_DOWNLOAD = 64 << 20;
const MAX_DESCRIPTION = 255;
const MAX_CHUNK = 8 << 10;

/** Where a session's base is. */
export interface Located {
  readonly owner: bigint;
  readonly epoch: bigint;
  readonly host: string;
  readonly port: number;
}

export interface Ticket extends Located {
  readonly session: bigint;
  readonly secret: Uint8Array;
}

/** Why the login service refuses a request, by code. */
export const LOGIN_REFUSALS = [
  "WrongPassword", "Throttled", "Busy", "WrongProtocol", "NotHeld", "UnknownSession", "ShuttingDown", "UnfitName",
  "LoggedIn", "WrongToken", "OtherCredentials", "NameTaken", "NoRegistration", "NoAccount",
] as const;
export type LoginRefusal = (typeof LOGIN_REFUSALS)[number];

/** Why a base rejects a client, by code. */
export const REJECTIONS = [
  "WrongProtocol", "WrongSchema", "UnknownSession", "Elsewhere", "Busy", "LoggedInElsewhere",
] as const;
export type Rejection = (typeof REJECTIONS)[number];

/** Why a connection was closed, by code. */
export const CLOSE_REASONS = [
  "Finished", "Lost", "Replaced", "Moved", "ShuttingDown", "Ended", "TooSlow", "TooFast", "Malformed", "TooLarge",
  "Silent", "Full", "LoggedInElsewhere", "Banned",
] as const;
export type CloseReason = (typeof CLOSE_REASONS)[number];

/** Why a call was taken but not run, by code. */
export const CALL_REFUSALS = ["NoSuchMethod", "NotAllowed", "BadArguments", "TooOften"] as const;
export type CallRefusal = (typeof CALL_REFUSALS)[number];

/** What a client shows to be admitted. */
export type Credentials =
  | {
      readonly name: string;
      readonly password: string;
      /** Whether the account is to be created. */
      readonly register?: boolean;
    }
  /** A token of an identity provider, which names the account. */
  | { readonly token: string };

/** A ban of the account. */
export interface Ban {
  /** When it ends; `undefined` if it does not end by itself. */
  readonly until: Date | undefined;
  /** The operator's reason. */
  readonly reason: string;
}

export type LoginAnswer =
  | { readonly kind: "ticket"; readonly ticket: Ticket }
  | { readonly kind: "located"; readonly located: Located }
  | { readonly kind: "refused"; readonly reason: LoginRefusal }
  | { readonly kind: "banned"; readonly ban: Ban }
  /** More of these may follow, and then another answer. */
  | { readonly kind: "queued"; readonly position: number; readonly length: number };

export interface Welcome {
  readonly session: bigint;
  readonly epoch: bigint;
  readonly entity: EntityId;
  readonly typeId: number;
  readonly token: Uint8Array;
  /** Metres per unit of predicted movements; `undefined` if movements are plain. */
  readonly scale: number | undefined;
}

export type HelloAnswer =
  | { readonly kind: "welcome"; readonly welcome: Welcome }
  | { readonly kind: "rejected"; readonly reason: Rejection }
  /** The session continues at another owner, to which its client was given. */
  | { readonly kind: "given"; readonly owner: bigint };

export type ViewItem =
  | { readonly kind: "enter"; readonly entity: EntityId; readonly typeId: number; readonly place: Place | undefined }
  | { readonly kind: "leave"; readonly entity: EntityId }
  | {
      readonly kind: "refresh";
      readonly entity: EntityId;
      readonly upto: bigint;
      readonly level: number;
      readonly properties: Uint8Array;
    }
  | {
      readonly kind: "update";
      readonly entity: EntityId;
      readonly from: bigint;
      readonly upto: bigint;
      readonly events: Uint8Array;
    }
  | { readonly kind: "placed"; readonly entity: EntityId; readonly place: Place }
  | { readonly kind: "drives"; readonly entity: EntityId; readonly drives: boolean }
  | { readonly kind: "space"; readonly entity: EntityId; readonly space: number }
  | { readonly kind: "level"; readonly entity: EntityId; readonly level: number; readonly properties: Uint8Array }
  | { readonly kind: "return"; readonly entity: EntityId; readonly place: Place }
  | { readonly kind: "spaceData"; readonly entity: EntityId; readonly entry: SpaceEntry };

export interface ViewFrame {
  readonly source: Part;
  readonly view: bigint;
  readonly sequence: bigint;
  readonly tick: bigint;
  readonly items: readonly ViewItem[];
}

export type ToClient =
  | { readonly kind: "took"; readonly part: Part; readonly entity: EntityId; readonly upto: bigint }
  | { readonly kind: "gap"; readonly part: Part; readonly entity: EntityId; readonly have: bigint }
  | { readonly kind: "gone"; readonly part: Part; readonly entity: EntityId }
  | {
      readonly kind: "refused";
      readonly part: Part;
      readonly entity: EntityId;
      readonly number: bigint;
      readonly reason: CallRefusal;
    }
  | { readonly kind: "view"; readonly frame: ViewFrame }
  | { readonly kind: "stampsWanted"; readonly source: Part }
  | { readonly kind: "reset"; readonly entity: EntityId; readonly typeId: number }
  | { readonly kind: "rateWarned" }
  | { readonly kind: "moving"; readonly located: Located }
  | { readonly kind: "banned"; readonly ban: Ban }
  | { readonly kind: "downloadBegun"; readonly begun: DownloadBegun }
  | {
      readonly kind: "downloadChunk";
      readonly id: DownloadId;
      readonly offset: number;
      readonly content: Uint8Array;
    }
  | { readonly kind: "downloadEnded"; readonly id: DownloadId }
  | { readonly kind: "given"; readonly owner: bigint };

/** The entity whose base part sends a download, and the number by which behaviour knows it. */
export interface DownloadId {
  readonly entity: EntityId;
  readonly number: bigint;
}

/** A download that begins, or continues on another connection. */
export interface DownloadBegun {
  readonly id: DownloadId;
  /** Bytes. */
  readonly size: number;
  /** SHA-256 of the content, in hexadecimal digits. */
  readonly hash: string;
  /** What the game calls it. */
  readonly description: string;
}

/** What a client has of a download: the bytes from the beginning. */
export interface DownloadProgress {
  readonly id: DownloadId;
  readonly upto: number;
}

/** The place of an entity at a tick. */
export interface Move {
  readonly entity: EntityId;
  readonly place: Place;
}

export interface Moves {
  readonly view: bigint;
  readonly tick: bigint;
  readonly moves: readonly Move[];
}

/** The history numbers up to which a client has received an entity: of the whole, and of each finer level of detail. */
export interface Stamp {
  readonly entity: EntityId;
  readonly upto: bigint;
  readonly finer: readonly bigint[];
}

/** The state of a view that begins. */
export interface Stamps {
  readonly source: Part;
  readonly view: bigint;
  readonly seen: readonly Stamp[];
  readonly kept: readonly Stamp[];
  readonly space: { readonly space: number; readonly versions: readonly (readonly [number, SpaceVersion])[] } | undefined;
  /** Others that the client moves, and its own entity if it does not move that; ascending. */
  readonly unusualDrivers: readonly EntityId[];
}

export interface CallFrame {
  readonly part: Part;
  readonly entity: EntityId;
  readonly number: bigint;
  readonly isOldest: boolean;
  readonly message: Uint8Array;
}

/** Proof of a session: the secret of its ticket, or the token of its last welcome. */
export interface Proof {
  readonly kind: "ticket" | "resume";
  readonly secret: Uint8Array;
}

const SECRET = 32;
const HASH = 32;
/** The smallest number of 32 bits with the full precision of these. */
const SMALLEST_NORMAL = 2 ** -126;
/** What a client reads beside plain movements, in its hello. */
const READS_PREDICTED = 1;
/** The unit of angles in movements, radians. */
const TURN = (2 * Math.PI) / 65536;

export function readPart(reader: Reader): Part {
  switch (reader.u8("part")) {
    case 0:
      return "base";
    case 1:
      return "cell";
    default:
      throw new Malformed("part");
  }
}

function writePart(writer: Writer, part: Part): Writer {
  return writer.u8(part === "base" ? 0 : 1);
}

function readReason<T>(reader: Reader, reasons: readonly T[]): T {
  const reason = reasons[reader.u8("reason")];
  if (reason === undefined) {
    throw new Malformed("reason");
  }
  return reason;
}

function readPosition(reader: Reader): Position {
  const [x, y, z] = [reader.finite("position"), reader.finite("position"), reader.finite("position")];
  return { x, y, z };
}

function readDirection(reader: Reader): Direction {
  const [yaw, pitch, roll] = [reader.finite("direction"), reader.finite("direction"), reader.finite("direction")];
  return { yaw, pitch, roll };
}

function readPlace(reader: Reader): Place {
  const position = readPosition(reader);
  return { position, direction: readDirection(reader) };
}

function writePlace(writer: Writer, { position, direction }: Place): Writer {
  const { x, y, z } = position;
  const { yaw, pitch, roll } = direction;
  [x, y, z, yaw, pitch, roll].forEach((number) => writer.f32(number));
  return writer;
}

function readHost(reader: Reader): string {
  switch (reader.u8("address")) {
    case 4:
      return reader.raw(4, "address").join(".");
    case 6: {
      const view = reader.take(16, "address");
      const groups = Array.from({ length: 8 }, (_, i) => view.getUint16(2 * i).toString(16));
      return `[${groups.join(":")}]`;
    }
    default:
      throw new Malformed("address");
  }
}

function readAddress(reader: Reader): { host: string; port: number } {
  const host = readHost(reader);
  const port = reader.take(2, "port").getUint16(0);
  // The platform takes no fingerprint of this certificate, and checks it against an authority.
  reader.option("certificate", () => reader.raw(SECRET, "certificate"));
  return { host, port };
}

const owner = (reader: Reader): bigint => BigInt(reader.small(2 ** 32, "owner"));
const typeId = (reader: Reader): number => reader.small(65536, "type");
const entity = (reader: Reader): EntityId => reader.number("entity");

/** Reads a body with `read`, which must consume all of it. */
function whole<T>(body: Uint8Array, what: string, read: (reader: Reader) => T): T {
  const reader = new Reader(body);
  const found = read(reader);
  reader.finish(what);
  return found;
}

/** The kind of the login service's answers that are not the last one of their connection. */
const QUEUED = 5;

/** Whether another answer follows on the same connection. */
export function isQueued(body: Uint8Array): boolean {
  return body[0] === QUEUED;
}

export function readLoginAnswer(body: Uint8Array): LoginAnswer {
  return whole(body, "answer of the login service", (reader) => {
    switch (reader.u8("answer")) {
      case 1: {
        const [of, epoch, session] = [owner(reader), reader.number("epoch"), reader.number("session")];
        const address = readAddress(reader);
        const secret = reader.raw(SECRET, "secret");
        return { kind: "ticket", ticket: { owner: of, epoch, session, ...address, secret } };
      }
      case 2:
        return { kind: "located", located: readLocated(reader) };
      case 3:
        return { kind: "refused", reason: readReason(reader, LOGIN_REFUSALS) };
      case 4:
        return { kind: "banned", ban: readBan(reader) };
      case QUEUED: {
        const [position, length] = [Number(reader.number("position")), Number(reader.number("length"))];
        return { kind: "queued", position, length };
      }
      default:
        throw new Malformed("answer");
    }
  });
}

function readBan(reader: Reader): Ban {
  const ends = () => new Date(Math.min(Number(reader.number("end of the ban")), LAST_DATE));
  const until = reader.option("end of the ban", ends);
  const bytes = reader.blob("reason for the ban");
  if (bytes.length > MAX_BAN_REASON) {
    throw new Malformed("reason for the ban");
  }
  return { until, reason: textOf(bytes, "reason for the ban") };
}

function readLocated(reader: Reader): Located {
  const [of, epoch] = [owner(reader), reader.number("epoch")];
  return { owner: of, epoch, ...readAddress(reader) };
}

export function readHelloAnswer(body: Uint8Array): HelloAnswer {
  return whole(body, "answer to the hello", (reader) => {
    switch (reader.u8("answer")) {
      case 1: {
        const [session, epoch] = [reader.number("session"), reader.number("epoch")];
        const [of, type] = [entity(reader), typeId(reader)];
        const token = reader.raw(SECRET, "token");
        const scale = reader.option("movements", () => readScale(reader));
        return { kind: "welcome", welcome: { session, epoch, entity: of, typeId: type, token, scale } };
      }
      case 2:
        return { kind: "rejected", reason: readReason(reader, REJECTIONS) };
      case 3:
        return { kind: "given", owner: owner(reader) };
      default:
        throw new Malformed("answer");
    }
  });
}

function readScale(reader: Reader): number {
  const scale = reader.finite("scale of movements");
  if (scale < SMALLEST_NORMAL) {
    throw new Malformed("scale of movements");
  }
  return scale;
}

export function readToClient(body: Uint8Array): ToClient {
  return whole(body, "frame", (reader): ToClient => {
    switch (reader.u8("frame")) {
      case 1:
        return { kind: "took", part: readPart(reader), entity: entity(reader), upto: reader.number("call") };
      case 2:
        return { kind: "gap", part: readPart(reader), entity: entity(reader), have: reader.number("call") };
      case 3:
        return { kind: "gone", part: readPart(reader), entity: entity(reader) };
      case 4: {
        const [part, of, number] = [readPart(reader), entity(reader), reader.number("call")];
        return { kind: "refused", part, entity: of, number, reason: readReason(reader, CALL_REFUSALS) };
      }
      case 5:
        return { kind: "view", frame: readViewFrame(reader) };
      case 6:
        return { kind: "stampsWanted", source: readPart(reader) };
      case 7:
        return { kind: "reset", entity: entity(reader), typeId: typeId(reader) };
      case 8:
        return { kind: "rateWarned" };
      case 9:
        return { kind: "moving", located: readLocated(reader) };
      case 10:
        return { kind: "banned", ban: readBan(reader) };
      case 11:
        return { kind: "downloadBegun", begun: readDownloadBegun(reader) };
      case 12:
        return readDownloadChunk(reader);
      case 13:
        return { kind: "downloadEnded", id: readDownloadId(reader) };
      case 14:
        return { kind: "given", owner: owner(reader) };
      default:
        throw new Malformed("frame");
    }
  });
}

function readDownloadId(reader: Reader): DownloadId {
  return { entity: entity(reader), number: reader.number("download") };
}

function readDownloadBegun(reader: Reader): DownloadBegun {
  const id = readDownloadId(reader);
  const size = reader.small(MAX_DOWNLOAD + 1, "size of a download");
  const hash = toHex(reader.raw(HASH, "hash of a download"));
  const bytes = reader.blob("description of a download");
  if (bytes.length > MAX_DESCRIPTION) {
    throw new Malformed("description of a download");
  }
  return { id, size, hash, description: textOf(bytes, "description of a download") };
}

function readDownloadChunk(reader: Reader): ToClient {
  const id = readDownloadId(reader);
  const offset = reader.small(MAX_DOWNLOAD + 1, "offset in a download");
  const content = reader.blob("content of a download");
  if (content.length === 0 || content.length > MAX_CHUNK || offset + content.length > MAX_DOWNLOAD) {
    throw new Malformed("content of a download");
  }
  return { kind: "downloadChunk", id, offset, content };
}

function readViewFrame(reader: Reader): ViewFrame {
  const source = readPart(reader);
  const [view, sequence, tick] = [reader.number("view"), reader.number("sequence"), reader.number("tick")];
  if (sequence === 0n) {
    throw new Malformed("sequence");
  }
  const count = reader.small(2 ** 32, "count");
  if (count > reader.remaining) {
    throw new Malformed("count");
  }
  const items: ViewItem[] = [];
  for (let i = 0; i < count; i++) {
    items.push(readItem(reader));
  }
  return { source, view, sequence, tick, items };
}

function readItem(reader: Reader): ViewItem {
  const kind = reader.u8("item");
  const of = entity(reader);
  switch (kind) {
    case 1: {
      const type = typeId(reader);
      return { kind: "enter", entity: of, typeId: type, place: reader.option("place", () => readPlace(reader)) };
    }
    case 2:
      return { kind: "leave", entity: of };
    case 3: {
      const [upto, level] = [reader.number("history"), reader.u8("level")];
      return { kind: "refresh", entity: of, upto, level, properties: reader.blob("properties") };
    }
    case 4: {
      const [from, span] = [reader.number("history"), reader.number("span")];
      const upto = from + span;
      if (upto >= 1n << 64n) {
        throw new Malformed("span");
      }
      return { kind: "update", entity: of, from, upto, events: reader.blob("events") };
    }
    case 5:
      return { kind: "placed", entity: of, place: readPlace(reader) };
    case 6:
      return { kind: "space", entity: of, space: reader.small(2 ** 32, "space") };
    case 7: {
      const level = reader.u8("level");
      return { kind: "level", entity: of, level, properties: reader.blob("properties") };
    }
    case 8:
      return { kind: "return", entity: of, place: readPlace(reader) };
    case 9: {
      const key = reader.small(512, "key");
      const [life, since] = [reader.number("life"), reader.number("since")];
      const version = { life, since, by: reader.small(2 ** 32, "owner") };
      return { kind: "spaceData", entity: of, entry: { key, version, value: reader.blob("value") } };
    }
    case 10: {
      const drives = reader.u8("drives");
      if (drives > 1) {
        throw new Malformed("drives");
      }
      return { kind: "drives", entity: of, drives: drives === 1 };
    }
    default:
      throw new Malformed("item");
  }
}

/** Reads a datagram of movements. */
export function readMoves(bytes: Uint8Array): Moves {
  return whole(bytes, "datagram", (reader) => {
    if (reader.u8("datagram") !== 1) {
      throw new Malformed("datagram");
    }
    const [view, tick] = [reader.number("view"), reader.number("tick")];
    const count = reader.small(2 ** 32, "count");
    if (count > reader.remaining) {
      throw new Malformed("count");
    }
    const moves = Array.from({ length: count }, () => {
      const of = entity(reader);
      const position = readPosition(reader);
      const angle = () => reader.u16("angle") * TURN;
      const direction = { yaw: angle(), pitch: angle(), roll: angle() };
      return { entity: of, place: { position, direction } };
    });
    return { view, tick, moves };
  });
}

export function writeLogIn(credentials: Credentials): Uint8Array {
  const begin = (kind: number): Writer => new Writer().u8(kind).raw(fromHex(PROTOCOL));
  if ("token" in credentials) {
    return begin(3).text(credentials.token).finish();
  }
  const { name, password, register = false } = credentials;
  return begin(register ? 4 : 1).text(name).text(password).finish();
}

export function writeLocate(of: bigint, session: bigint): Uint8Array {
  return new Writer().u8(2).number(of).number(session).finish();
}

export function writeHello(
  schema: string,
  session: { readonly owner: bigint; readonly epoch: bigint; readonly session: bigint; readonly proof: Proof },
): Uint8Array {
  return new Writer()
    .raw(fromHex(PROTOCOL))
    .raw(fromHex(schema))
    .number(session.owner)
    .number(session.epoch)
    .number(session.session)
    .u8(session.proof.kind === "ticket" ? 1 : 2)
    .raw(session.proof.secret)
    .u8(READS_PREDICTED)
    .finish();
}

export function writeCall(call: CallFrame): Uint8Array {
  const writer = writePart(new Writer().u8(call.isOldest ? 4 : 1), call.part);
  return writer.number(call.entity).number(call.number).raw(call.message).finish();
}

export function writeStamps(stamps: Stamps): Uint8Array {
  const writer = writePart(new Writer().u8(2), stamps.source).number(stamps.view);
  for (const list of [stamps.seen, stamps.kept]) {
    writer.number(list.length);
    for (const stamp of list) {
      writer.number(stamp.entity).number(stamp.upto).u8(stamp.finer.length);
      stamp.finer.forEach((history) => writer.number(history));
    }
  }
  const hasUnusual = stamps.unusualDrivers.length > 0;
  writer.u8((stamps.space === undefined ? 0 : 1) + (hasUnusual ? 2 : 0));
  if (stamps.space !== undefined) {
    const { space, versions } = stamps.space;
    writer.number(space).number(versions.length);
    for (const [key, { life, since, by }] of versions) {
      writer.number(key).number(life).number(since).number(by);
    }
  }
  if (hasUnusual) {
    writer.number(stamps.unusualDrivers.length);
    stamps.unusualDrivers.forEach((entity) => writer.number(entity));
  }
  return writer.finish();
}

export function writeDownloadProgress({ id, upto }: DownloadProgress): Uint8Array {
  return new Writer().u8(5).number(id.entity).number(id.number).number(upto).finish();
}

export function writeBye(): Uint8Array {
  return new Writer().u8(3).finish();
}

/** A datagram that acknowledges predicted movements of a view. */
export function writeMovementAck(view: bigint, { tick, before }: MovementAck): Uint8Array {
  const writer = new Writer().u8(2).number(view);
  writer.take(2).setUint16(0, tick, true);
  writer.take(2).setUint16(0, before, true);
  return writer.finish();
}

/** A datagram with the place of the client's own entity. */
export function writeMoved(sequence: bigint, place: Place): Uint8Array {
  return writePlace(new Writer().u8(1).number(sequence), place).finish();
}

/** A movement of another entity than the client's own, which was shown up to that history number. */
export function writeDrove(
  sequence: bigint,
  { entity, upto }: { readonly entity: EntityId; readonly upto: bigint },
  place: Place,
): Uint8Array {
  return writePlace(new Writer().u8(3).number(entity).number(upto).number(sequence), place).finish();
}

