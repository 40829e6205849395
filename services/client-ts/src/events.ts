import type { Shown } from "./changes.js";
import type { Ban, CallRefusal, CloseReason, DownloadId, LoginRefusal, Rejection } from "./frames.js";
import type { EntityId, Part, Place, Value } from "./world.js";

/** Why a client has ended. */
export type EndReason =
  | { readonly kind: "loginRefused"; readonly reason: LoginRefusal }
  | { readonly kind: "rejected"; readonly reason: Rejection }
  | { readonly kind: "closed"; readonly reason: CloseReason }
  | { readonly kind: "banned"; readonly ban: Ban }
  | { readonly kind: "left" };

/** What a game receives. Property and method numbers are client numbers: indices into the type's description. */
export type Event =
  /** The client is logged in, and controls this entity. */
  | { readonly kind: "connected"; readonly entity: EntityId; readonly typeId: number }
  /**
   * The realm is full, and the client waits in a queue: at this position, 1 for the next one, of so many. The event comes
   * again when that changes, and every ten seconds. `connected` follows, or `ended`.
   */
  | { readonly kind: "queued"; readonly position: number; readonly length: number }
  /** The connection was lost, and the client resumes the session. */
  | { readonly kind: "lost"; readonly reason: CloseReason }
  /** The session continues where it was. */
  | { readonly kind: "resumed" }
  /** The client controls another entity, or the same one, whose cell part has ended. Everything in view has left before. */
  | { readonly kind: "controls"; readonly entity: EntityId; readonly typeId: number }
  /** A part of an entity comes into view. Its properties follow with `refreshed`. */
  | { readonly kind: "entered"; readonly part: Part; readonly entity: EntityId; readonly typeId: number }
  | { readonly kind: "left"; readonly part: Part; readonly entity: EntityId }
  /** Properties have the values that they have now. `replaced` has the former values of those that differ. */
  | {
      readonly kind: "refreshed";
      readonly part: Part;
      readonly entity: EntityId;
      readonly replaced: ReadonlyMap<number, Value>;
    }
  /** Something happened to an entity, with its number in the entity's history. */
  | {
      readonly kind: "shown";
      readonly part: Part;
      readonly entity: EntityId;
      readonly number: bigint;
      readonly shown: Shown;
    }
  /** The server has put an entity to a place, which may be the client's own. */
  | { readonly kind: "placed"; readonly entity: EntityId; readonly place: Place }
  /**
   * The client moves this entity from now on (`Client.moveEntity`), or does not move it any more: behaviour has chosen
   * another driver. At first the client moves its own entity and no other. Another entity that leaves the view is no
   * longer moved by the client.
   */
  | { readonly kind: "drives"; readonly entity: EntityId; readonly drives: boolean }
  | { readonly kind: "spaceEntered"; readonly space: number }
  | { readonly kind: "spaceDataChanged"; readonly key: number }
  /** A call was taken, but not run. */
  | {
      readonly kind: "callRefused";
      readonly part: Part;
      readonly entity: EntityId;
      readonly number: bigint;
      readonly reason: CallRefusal;
    }
  /** The called part does not exist any more; these calls may not have been taken. */
  | { readonly kind: "callsLost"; readonly part: Part; readonly entity: EntityId; readonly numbers: readonly bigint[] }
  /** More of a download is here, or it begins: at most ten times a second. It continues over reconnections. */
  | {
      readonly kind: "downloadProgressed";
      readonly id: DownloadId;
      /** What the game calls it. */
      readonly description: string;
      readonly received: number;
      /** Bytes of the whole. */
      readonly size: number;
    }
  /** A download is here as a whole. */
  | { readonly kind: "downloaded"; readonly id: DownloadId; readonly description: string; readonly content: Uint8Array }
  /** A download that had begun has ended without being whole: its time was over, or it was cancelled. */
  | { readonly kind: "downloadEnded"; readonly id: DownloadId }
  /** The client sends nearly as much as is allowed, and is closed if it sends more. */
  | { readonly kind: "rateWarned" }
  /** The last event. */
  | { readonly kind: "ended"; readonly reason: EndReason };
