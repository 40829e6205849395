/**
 * A client of an Annals realm, for browsers and Node, over WebTransport or WebSocket.
 *
 * @packageDocumentation
 */
export { CallFailed, type ReturnValues } from "./asks.js";
export { type Address, type AskOptions, Client, type Entity, type Options, type WebTransportAccess } from "./client.js";
export type { Shown } from "./changes.js";
export type { TransportName } from "./connection.js";
export type { EndReason, Event } from "./events.js";
export { CallError } from "./exposed.js";
export {
  PROTOCOL,
  type Ban,
  type CallRefusal,
  type CloseReason,
  type Credentials,
  type DownloadId,
  type LoginRefusal,
  type Rejection,
} from "./frames.js";
export type { CallFailure, CallOutcome, Reply, ReplyFailure } from "./replies.js";
export type { World } from "./session.js";
export { SpaceData, type SpaceEntry, type SpaceVersion } from "./space_data.js";
export {
  type Change,
  EVERY,
  EntityType,
  type PartAt,
  type PathInto,
  type Slice,
  type TypeShape,
  type TypedEntity,
  Types,
} from "./typed.js";
export type * from "./world.js";
