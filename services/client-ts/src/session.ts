import { Asks, type Settled } from "./asks.js";
import { Malformed } from "./bytes.js";
import { Calls } from "./calls.js";
import { Shower } from "./changes.js";
import { Downloads } from "./downloads.js";
import type { EndReason, Event } from "./events.js";
import { CallError, encodeCall } from "./exposed.js";
import {
  type CallFrame,
  type CloseReason,
  type Credentials,
  type DownloadProgress,
  type Located,
  type LoginRefusal,
  type Proof,
  type Rejection,
  type Ticket,
  type Welcome,
  readHelloAnswer,
  readLoginAnswer,
  readMoves,
  readToClient,
  writeBye,
  writeCall,
  writeDownloadProgress,
  writeHello,
  writeLocate,
  writeLogIn,
  writeStamps,
} from "./frames.js";
import { HeldAck } from "./held_ack.js";
import { PREDICTED } from "./predicted.js";
import { SentMoves } from "./sent_moves.js";
import { ViewGap, View } from "./view.js";
import type { EntityId, Part, Place, TypeDescription, Value } from "./world.js";

/** Milliseconds for the login service's answer; it may have to activate a base first. */
const LOGIN_WITHIN = 10_000;
/** Milliseconds for the next news from the queue of a full realm: three times as long as the login service is silent. */
const QUEUED_WITHIN = 30_000;
/** Milliseconds for a connection, doubled for each failed attempt. */
const CONNECT_WITHIN = 2_000;
const CONNECT_WITHIN_AT_MOST = 16_000;
/** Milliseconds for a base's answer to the hello. */
const WELCOME_WITHIN = 5_000;
/** The same, once the present base has closed the connection in favour of the one that it announced. */
const MOVED_WITHIN = 2_000;
/** Milliseconds in which an announced process must serve the session. */
const ANNOUNCED_WITHIN = 5_000;
/** Maximum announcements that are followed between two welcomes. */
const MOST_ANNOUNCEMENTS = 8;
/** Milliseconds before the second attempt of any step; doubled for each that fails. */
const FIRST_RETRY = 200;
const LAST_RETRY = 5_000;
/** Milliseconds before a client that logged in too often tries again. */
const THROTTLED_FOR = 60_000;
/** Milliseconds for the answer to a call, unless the game says otherwise. */
const ANSWER_WITHIN = 30_000;
const ORIGIN = { x: 0, y: 0, z: 0 };

/** Closes after which another attempt would be closed for the same reason. */
const FINAL: readonly CloseReason[] = [
  "Finished", "Replaced", "LoggedInElsewhere", "Banned", "Ended", "TooFast", "Malformed", "TooLarge",
];

/** The world that a client knows, as generated from its definitions. */
export interface World {
  /** The fingerprint of what clients see. */
  readonly schema: string;
  readonly types: readonly TypeDescription[];
}

/** What a shell does for the core. A connection is named by the number of its attempt. */
export type Output =
  /** Send a request to the login service, and report the answer. */
  | { readonly kind: "login"; readonly attempt: number; readonly body: Uint8Array }
  /** Connect to a base. */
  | { readonly kind: "connect"; readonly attempt: number; readonly to: Located }
  | { readonly kind: "frame"; readonly attempt: number; readonly body: Uint8Array }
  | { readonly kind: "datagram"; readonly attempt: number; readonly bytes: Uint8Array }
  /** Close, when everything before is written, and report nothing more of the connection. */
  | { readonly kind: "close"; readonly attempt: number; readonly reason: CloseReason };

interface Session {
  readonly id: bigint;
  owner: bigint;
  epoch: bigint;
  base: Located;
  proof: Proof;
  controls: { readonly entity: EntityId; readonly typeId: number } | undefined;
}

type Next = "logIn" | "locate" | "connect";

type Phase =
  | { readonly kind: "new" | "ended" }
  | { readonly kind: "asking" | "connecting" | "greeting"; readonly attempt: number; readonly until: number }
  | { readonly kind: "playing"; readonly attempt: number }
  | { readonly kind: "resting"; readonly until: number; readonly then: Next };

/** The connection that is opened beside the present one. */
interface Successor {
  readonly attempt: number;
  readonly located: Located;
  readonly until: number;
  isConnected: boolean;
}

/**
 * The client's side of a session. It has no clock, sockets or timers: a shell passes it what arrives and the time, in
 * milliseconds, and carries out its outputs.
 */
export class ClientCore {
  readonly views: { readonly base: View; readonly cell: View };
  private readonly types: ReadonlyMap<number, TypeDescription>;
  private readonly calls = new Calls();
  private readonly asks = new Asks();
  private readonly outputs: Output[] = [];
  private readonly events: Event[] = [];
  private readonly downloads = new Downloads((event) => this.events.push(event));
  private phase: Phase = { kind: "new" };
  private session: Session | undefined;
  private successor: Successor | undefined;
  private announcements = 0;
  /** Whether the present attempt continues a session that another process or owner handed over. */
  private isMoving = false;
  /** Until then a failure of that is no interruption. */
  private retriesUntil = 0;
  private attempts = 0;
  private failures = 0;
  private readonly sentMoves = new SentMoves();
  private readonly heldAck = new HeldAck();

  constructor(
    private readonly world: World,
    private readonly credentials: Credentials,
    /** A number from 0 to below 1, other each time: spreads the retries of many clients. */
    private readonly random: () => number,
  ) {
    this.types = new Map(world.types.map((type) => [type.id, type]));
    const showers = new Map(world.types.map((type) => [type.id, new Shower(type)]));
    const view = (source: Part) => new View(source, showers, this.types, (event) => this.shown(event));
    this.views = { base: view("base"), cell: view("cell") };
  }

  /** The entity that the client controls. */
  get controls(): { readonly entity: EntityId; readonly typeId: number } | undefined {
    return this.session?.controls;
  }

  get isPlaying(): boolean {
    return this.phase.kind === "playing";
  }

  /** The attempt whose connection the client plays on. */
  get playsOn(): number | undefined {
    return this.phase.kind === "playing" ? this.phase.attempt : undefined;
  }

  get hasEnded(): boolean {
    return this.phase.kind === "ended";
  }

  get unconfirmedCalls(): number {
    return this.calls.unconfirmed;
  }

  takeOutputs(): Output[] {
    const attempt = this.playsOn;
    const isSending = (output: Output) =>
      (output.kind === "frame" || output.kind === "datagram") && output.attempt === attempt;
    if (attempt !== undefined && this.outputs.some(isSending)) {
      this.sendAck(this.heldAck.take(), attempt);
    }
    return this.outputs.splice(0);
  }

  takeEvents(): Event[] {
    return this.events.splice(0);
  }

  /** Calls of {@link ask} that have settled. */
  takeSettled(): Settled[] {
    return this.asks.takeSettled();
  }

  /** Starts the log-in. */
  start(now: number): void {
    if (this.phase.kind === "new") {
      this.tryNext(now, "logIn");
    }
  }

  /** The login service has answered, or, without a body, has not. Positions in the queue may come before the answer. */
  loginAnswered(now: number, attempt: number, body: Uint8Array | undefined): void {
    if (this.phase.kind !== "asking" || this.phase.attempt !== attempt) {
      return;
    }
    const answer = body && read(() => readLoginAnswer(body));
    switch (answer?.kind) {
      case "ticket":
        return this.takeTicket(now, answer.ticket);
      case "located":
        return this.takeLocation(now, answer.located);
      case "refused":
        return this.loginRefused(now, answer.reason);
      case "banned":
        return this.end({ kind: "banned", ban: answer.ban });
      case "queued":
        this.phase = { kind: "asking", attempt, until: now + QUEUED_WITHIN };
        this.failures = 0;
        this.events.push(answer);
        return;
      case undefined:
        if (body !== undefined) {
          this.outputs.push({ kind: "close", attempt, reason: "Malformed" });
        }
        if (this.session === undefined) {
          return this.rest(now, "logIn");
        }
        // The base may still be where it was, if that was ever known.
        return this.rest(now, this.session.epoch > 0n ? "connect" : "locate");
    }
  }

  connected(now: number, attempt: number): void {
    if (this.successor?.attempt === attempt) {
      this.successor.isConnected = true;
      return this.sayHello(attempt);
    }
    if (this.phase.kind === "connecting" && this.phase.attempt === attempt) {
      this.phase = { kind: "greeting", attempt, until: now + WELCOME_WITHIN };
      this.sayHello(attempt);
    }
  }

  frame(now: number, attempt: number, body: Uint8Array): void {
    if (this.successor?.attempt === attempt) {
      return this.successorAnswered(now, this.successor, body);
    }
    if ((this.phase.kind !== "greeting" && this.phase.kind !== "playing") || this.phase.attempt !== attempt) {
      return;
    }
    if (this.phase.kind === "greeting") {
      return this.greeted(now, attempt, body);
    }
    const frame = read(() => readToClient(body));
    if (frame === undefined) {
      return this.takeMalformed(now);
    }
    this.take(now, frame);
  }

  datagram(now: number, attempt: number, bytes: Uint8Array): void {
    const own = this.controls;
    if (this.phase.kind !== "playing" || this.phase.attempt !== attempt || own === undefined) {
      return;
    }
    const { cell } = this.views;
    if (bytes[0] === PREDICTED) {
      const found = read(() => cell.applyPredicted(bytes, own.entity));
      if (found !== undefined) {
        this.heldAck.hold(now, found.view, found.ack);
      }
      return;
    }
    const moves = read(() => readMoves(bytes));
    if (moves !== undefined) {
      cell.applyMoves(moves, own.entity);
    }
  }

  /** A connection was closed, or could not be opened. */
  disconnected(now: number, attempt: number, reason: CloseReason): void {
    if (this.successor?.attempt === attempt) {
      this.successor = undefined;
      return;
    }
    const { phase } = this;
    if (!("attempt" in phase) || phase.attempt !== attempt) {
      return;
    }
    if (phase.kind === "playing") {
      this.lost(now, reason);
    } else if (phase.kind !== "asking") {
      this.unreachable(now, reason);
    }
  }

  /** Does what is due. */
  tick(now: number): void {
    this.asks.expire(now);
    const { phase } = this;
    switch (phase.kind) {
      case "asking":
        if (phase.until <= now) {
          this.outputs.push({ kind: "close", attempt: phase.attempt, reason: "Silent" });
          this.loginAnswered(now, phase.attempt, undefined);
        }
        return;
      case "connecting":
      case "greeting":
        if (phase.until <= now) {
          this.outputs.push({ kind: "close", attempt: phase.attempt, reason: "Silent" });
          this.unreachable(now, "Silent");
        }
        return;
      case "resting":
        return phase.until <= now ? this.tryNext(now, phase.then) : undefined;
      case "playing":
        if (this.successor !== undefined && this.successor.until <= now) {
          this.abandonSuccessor();
        }
        for (const source of ["base", "cell"] as const) {
          if (this.views[source].deadline() <= now) {
            this.beginView(now, source);
          }
        }
        if (this.calls.deadline() <= now) {
          this.sendCalls(this.calls.due(now));
        }
        this.moveAgain(now, phase.attempt);
        this.sendAck(this.heldAck.takeOverdue(now), phase.attempt);
        return this.sendProgress(this.downloads.answer(now));
      default:
        return;
    }
  }

  /** When {@link tick} must be called at the latest. */
  deadline(): number {
    const { phase } = this;
    if ("until" in phase) {
      return Math.min(phase.until, this.asks.deadline());
    }
    if (phase.kind !== "playing") {
      return Infinity;
    }
    const { base, cell } = this.views;
    const timed = [base, cell, this.calls, this.asks, this.downloads, this.sentMoves, this.heldAck];
    return Math.min(...timed.map((one) => one.deadline()), this.successor?.until ?? Infinity);
  }

  /**
   * Calls an exposed method of an entity in view, and returns the call's number. The call is kept until the server has
   * logged its effects, over reconnections and take-overs. Throws {@link CallError}.
   */
  call(now: number, part: Part, entity: EntityId, method: string, args: readonly Value[]): bigint {
    return this.make(now, part, entity, encodeCall(this.calledType(entity), part, method, args).message);
  }

  /**
   * Makes a call of a two-way method, and returns the id under which it settles, once. Throws {@link CallError}, or a
   * `RangeError` if the time is not one.
   */
  ask(
    now: number,
    part: Part,
    entity: EntityId,
    method: string,
    args: readonly Value[],
    timeoutMs = ANSWER_WITHIN,
  ): number {
    if (!(timeoutMs >= 0)) {
      throw new RangeError("the time for an answer must be a number of milliseconds");
    }
    if (this.hasEnded) {
      throw new CallError("the client has ended");
    }
    const encoded = encodeCall(this.calledType(entity), part, method, args);
    if (encoded.described.returns === undefined) {
      throw new CallError(`${method} is one-way: it is not answered`);
    }
    if (this.asks.isFull) {
      throw new CallError("too many calls wait for an answer; wait for answers");
    }
    const number = this.make(now, part, entity, encoded.message);
    return this.asks.add(part, entity, number, encoded, now + timeoutMs);
  }

  private make(now: number, part: Part, entity: EntityId, message: Uint8Array): bigint {
    const number = this.calls.make(part, entity, message);
    if (number === "TooManyKept") {
      throw new CallError("too many calls are unconfirmed; wait for confirmations");
    }
    if (number === "TooManyLinks") {
      throw new CallError("too many entities were called in this session; log in again");
    }
    if (this.isPlaying) {
      this.sendCalls(this.calls.sendable(now, part, entity));
    }
    return number;
  }

  /** The type of an entity that can be called. */
  private calledType(entity: EntityId): TypeDescription {
    const own = this.controls;
    if (own === undefined) {
      throw new CallError("there is no session; wait for the event `connected`");
    }
    const type = this.typeOf(entity) ?? (own.entity === entity ? this.types.get(own.typeId) : undefined);
    if (type === undefined) {
      throw new CallError(`entity ${entity} is not in view`);
    }
    return type;
  }

  /** The type of an entity in view. */
  typeOf(entity: EntityId): TypeDescription | undefined {
    return (this.views.cell.entities.get(entity) ?? this.views.base.entities.get(entity))?.type;
  }

  /** Moves the entity that the client controls, as `moveEntity` does. */
  moveTo(now: number, place: Place): boolean {
    return this.moveEntity(now, this.controls?.entity, place);
  }

  /**
   * Moves an entity that the client drives. Returns whether it was sent: there is a connection, and the client drives the
   * entity. The last movement before a rest is sent again a few times, in case it was lost. Throws a `RangeError` if a
   * number is not finite in 32 bits: the server would end the session.
   */
  moveEntity(now: number, entity: EntityId | undefined, place: Place): boolean {
    const { position, direction } = place;
    if (![...Object.values(position), ...Object.values(direction)].every((n) => Number.isFinite(Math.fround(n)))) {
      throw new RangeError("the numbers of a place must be finite");
    }
    if (this.phase.kind !== "playing" || entity === undefined || !this.drives(entity)) {
      return false;
    }
    const isOwn = entity === this.controls?.entity;
    const seen = this.views.cell.entities.get(entity);
    if (seen === undefined && !isOwn) {
      return false;
    }
    if (seen !== undefined) {
      seen.place = place;
    }
    const bytes =
      seen === undefined || isOwn
        ? this.sentMoves.makeOwn(now, entity, place)
        : this.sentMoves.makeDriven(now, entity, seen.upto, place);
    this.outputs.push({ kind: "datagram", attempt: this.phase.attempt, bytes });
    return true;
  }

  /** Whether the client moves this entity. */
  drives(entity: EntityId): boolean {
    const own = this.controls?.entity;
    return own !== undefined && this.views.cell.drives(entity, own);
  }

  /** Sends the last movements again that are due. */
  private moveAgain(now: number, attempt: number): void {
    const placeOf = (entity: EntityId) =>
      this.drives(entity) ? this.views.cell.entities.get(entity)?.place : undefined;
    for (const bytes of this.sentMoves.due(now, placeOf)) {
      this.outputs.push({ kind: "datagram", attempt, bytes });
    }
  }

  private sendAck(bytes: Uint8Array | undefined, attempt: number): void {
    if (bytes !== undefined) {
      this.outputs.push({ kind: "datagram", attempt, bytes });
    }
  }

  /** Ends the session. Calls that wait for confirmations of earlier ones are not sent. */
  leave(): void {
    const { phase } = this;
    if (phase.kind === "playing") {
      this.send(writeBye());
    }
    if ("attempt" in phase) {
      this.outputs.push({ kind: "close", attempt: phase.attempt, reason: "Finished" });
    }
    this.end({ kind: "left" });
  }

  private tryNext(now: number, next: Next): void {
    this.abandonSuccessor();
    const attempt = ++this.attempts;
    const { session } = this;
    if (session !== undefined && next === "connect") {
      const within = Math.min(CONNECT_WITHIN * 2 ** this.failures, CONNECT_WITHIN_AT_MOST);
      this.phase = { kind: "connecting", attempt, until: now + within };
      this.outputs.push({ kind: "connect", attempt, to: session.base });
      return;
    }
    const body =
      session !== undefined && next === "locate"
        ? writeLocate(session.owner, session.id)
        : writeLogIn(this.credentials);
    this.phase = { kind: "asking", attempt, until: now + LOGIN_WITHIN };
    this.outputs.push({ kind: "login", attempt, body });
  }

  /** Waits for a random time, longer after each failure, before the next attempt. */
  private rest(now: number, then: Next): void {
    this.endMove(now, "Lost");
    const longest = Math.min(FIRST_RETRY * 2 ** this.failures, LAST_RETRY);
    this.failures = Math.min(this.failures + 1, 16);
    this.phase = { kind: "resting", until: now + longest * (0.5 + 0.5 * this.random()), then };
  }

  private loginRefused(now: number, reason: LoginRefusal): void {
    const then = this.session === undefined ? "logIn" : "locate";
    switch (reason) {
      case "Busy":
      case "NotHeld":
        return this.rest(now, then);
      case "Throttled":
        this.endMove(now, "Lost");
        this.phase = { kind: "resting", until: now + THROTTLED_FOR, then };
        return;
      default:
        return this.end({ kind: "loginRefused", reason });
    }
  }

  private takeTicket(now: number, ticket: Ticket): void {
    const { session: id, owner, epoch, secret } = ticket;
    // A new session: the calls of one that was never welcomed are void.
    this.session = { id, owner, epoch, base: ticket, proof: { kind: "ticket", secret }, controls: undefined };
    this.tryNext(now, "connect");
  }

  private takeLocation(now: number, located: Located): void {
    const { session } = this;
    if (session === undefined || session.owner !== located.owner) {
      return this.rest(now, "logIn");
    }
    if (located.epoch < session.epoch) {
      return this.rest(now, "locate");
    }
    session.epoch = located.epoch;
    session.base = located;
    this.tryNext(now, "connect");
  }

  private sayHello(attempt: number): void {
    if (this.session !== undefined) {
      const { owner, epoch, id: session, proof } = this.session;
      this.outputs.push({
        kind: "frame",
        attempt,
        body: writeHello(this.world.schema, { owner, epoch, session, proof }),
      });
    }
  }

  private greeted(now: number, attempt: number, body: Uint8Array): void {
    const answer = read(() => readHelloAnswer(body));
    switch (answer?.kind) {
      case "welcome":
        return this.welcomed(now, attempt, answer.welcome);
      case "rejected":
        this.outputs.push({ kind: "close", attempt, reason: "Finished" });
        return this.rejected(now, answer.reason);
      case "given":
        this.outputs.push({ kind: "close", attempt, reason: "Moved" });
        this.setOwner(answer.owner);
        // The base was handed over at the same time. Owners that go on like that are an interruption.
        if (this.isMoving && this.failures === 0) {
          this.retriesUntil = now + MOVED_WITHIN;
        }
        return this.rest(now, "locate");
      case undefined:
        this.outputs.push({ kind: "close", attempt, reason: "Malformed" });
        this.endMove(now, "Malformed");
        return this.rest(now, "locate");
    }
  }

  private rejected(now: number, reason: Rejection): void {
    this.endMove(now, "Moved");
    switch (reason) {
      case "Elsewhere":
        return this.rest(now, "locate");
      case "Busy":
        return this.rest(now, "connect");
      case "UnknownSession":
        if (this.session?.controls === undefined) {
          // The ticket was used up by a welcome that was lost.
          this.session = undefined;
          return this.rest(now, "logIn");
        }
    }
    this.end({ kind: "rejected", reason });
  }

  private isOfSession(welcome: Welcome): boolean {
    const { session } = this;
    return session !== undefined && session.id === welcome.session && session.epoch <= welcome.epoch;
  }

  private welcomed(now: number, attempt: number, welcome: Welcome): void {
    const { session } = this;
    if (session === undefined || !this.isOfSession(welcome)) {
      // A base that was replaced.
      this.outputs.push({ kind: "close", attempt, reason: "Moved" });
      this.endMove(now, "Moved");
      return this.rest(now, "locate");
    }
    const { entity, typeId, epoch, token, scale } = welcome;
    const before = session.controls;
    session.epoch = epoch;
    session.proof = { kind: "resume", secret: token };
    session.controls = { entity, typeId };
    this.views.cell.scale = scale;
    this.phase = { kind: "playing", attempt };
    this.failures = 0;
    this.announcements = 0;
    this.retriesUntil = now;
    const isMoved = this.isMoving;
    this.isMoving = false;
    if (before === undefined) {
      this.events.push({ kind: "connected", entity, typeId });
    } else if (!isMoved) {
      this.events.push({ kind: "resumed" });
    }
    if (before !== undefined && (before.entity !== entity || before.typeId !== typeId)) {
      this.controlsAnother(entity, typeId);
    }
    this.beginView(now, "base");
    this.beginView(now, "cell");
    this.sendCalls(this.calls.reconnected(now));
  }

  private take(now: number, frame: ReturnType<typeof readToClient>): void {
    switch (frame.kind) {
      case "took":
        this.calls.took(now, frame.part, frame.entity, frame.upto);
        return this.sendCalls(this.calls.sendable(now, frame.part, frame.entity));
      case "gap":
        return this.sendCalls(this.calls.gap(now, frame.part, frame.entity, frame.have));
      case "gone": {
        const numbers = this.calls.gone(frame.part, frame.entity);
        this.asks.gone(frame.part, frame.entity);
        if (numbers.length > 0) {
          this.events.push({ kind: "callsLost", part: frame.part, entity: frame.entity, numbers });
        }
        return;
      }
      case "refused": {
        const { part, entity, number, reason } = frame;
        this.events.push({ kind: "callRefused", part, entity, number, reason });
        this.asks.refused(part, entity, number, reason);
        return;
      }
      case "view":
        try {
          return this.views[frame.frame.source].apply(now, frame.frame);
        } catch (error) {
          if (!(error instanceof ViewGap)) {
            throw error;
          }
          return this.beginView(now, frame.frame.source);
        }
      case "stampsWanted":
        return this.beginView(now, frame.source);
      case "reset":
        if (this.session !== undefined) {
          this.session.controls = { entity: frame.entity, typeId: frame.typeId };
        }
        this.controlsAnother(frame.entity, frame.typeId);
        this.beginView(now, "base");
        return this.beginView(now, "cell");
      case "rateWarned":
        this.events.push({ kind: "rateWarned" });
        return;
      case "moving":
        return this.prepare(now, frame.located);
      case "banned":
        if (this.phase.kind === "playing") {
          this.outputs.push({ kind: "close", attempt: this.phase.attempt, reason: "Finished" });
        }
        return this.end({ kind: "banned", ban: frame.ban });
      case "downloadBegun":
        return this.sendProgress(this.downloads.begun(now, frame.begun));
      case "downloadChunk": {
        const answer = this.downloads.take(now, frame.id, frame.offset, frame.content);
        return answer === "malformed" ? this.takeMalformed(now) : this.sendProgress(answer);
      }
      case "downloadEnded":
        return this.downloads.ended(frame.id);
      case "given":
        return this.follow(now, frame.owner);
    }
  }

  /** A view reports what is shown. */
  private shown(event: Event): void {
    this.events.push(event);
    if (event.kind === "shown" && event.shown.kind === "reply") {
      this.asks.answered(event.entity, event.shown);
    }
  }

  private sendProgress(progress: DownloadProgress | undefined): void {
    if (progress !== undefined) {
      this.send(writeDownloadProgress(progress));
    }
  }

  /** The base has sent what it must not: the client connects again. */
  private takeMalformed(now: number): void {
    if (this.phase.kind === "playing") {
      this.outputs.push({ kind: "close", attempt: this.phase.attempt, reason: "Malformed" });
      this.lost(now, "Lost");
    }
  }

  private controlsAnother(entity: EntityId, typeId: number): void {
    this.views.base.clear();
    this.views.cell.clear();
    this.downloads.controls(entity);
    this.sentMoves.clear();
    this.events.push({ kind: "controls", entity, typeId });
  }

  private beginView(now: number, source: Part): void {
    if (source === "cell") {
      this.heldAck.discard();
    }
    const own = this.controls;
    const seen = own && this.views.cell.entities.get(own.entity);
    this.send(writeStamps(this.views[source].begin(now, own?.entity, seen?.place?.position ?? ORIGIN)));
  }

  private sendCalls(calls: readonly CallFrame[]): void {
    calls.forEach((call) => this.send(writeCall(call)));
  }

  private send(body: Uint8Array): void {
    if (this.phase.kind === "playing") {
      this.outputs.push({ kind: "frame", attempt: this.phase.attempt, body });
    }
  }

  /** The connection on which the client played was lost. */
  private lost(now: number, reason: CloseReason): void {
    if (FINAL.includes(reason)) {
      return this.end({ kind: "closed", reason });
    }
    this.views.base.pause();
    this.views.cell.pause();
    this.heldAck.discard();
    this.downloads.pause();
    const next = this.successor;
    if (next !== undefined) {
      this.takeOver(next);
      const kind = next.isConnected ? "greeting" : "connecting";
      this.phase = { kind, attempt: next.attempt, until: now + MOVED_WITHIN };
      return;
    }
    this.events.push({ kind: "lost", reason });
    this.tryNext(now, "locate");
  }

  private unreachable(now: number, reason: CloseReason): void {
    this.endMove(now, reason);
    if (FINAL.includes(reason)) {
      return this.end({ kind: "closed", reason });
    }
    this.rest(now, "locate");
  }

  /** The base announced that another process will serve the session: connects there beside the present connection. */
  private prepare(now: number, located: Located): void {
    const known = this.successor?.located;
    const isKnown = known?.host === located.host && known.port === located.port;
    if (this.session?.owner !== located.owner || isKnown || this.announcements >= MOST_ANNOUNCEMENTS) {
      return;
    }
    this.abandonSuccessor();
    this.announcements += 1;
    const attempt = ++this.attempts;
    this.successor = { attempt, located, until: now + ANNOUNCED_WITHIN, isConnected: false };
    this.outputs.push({ kind: "connect", attempt, to: located });
  }

  /**
   * The session continues at another owner, with an entity there: connects to it. That is an interruption only if it does
   * not succeed in time: the owner may be on its way to another process, and not be found by the first attempt.
   */
  private follow(now: number, owner: bigint): void {
    if (this.phase.kind !== "playing") {
      return;
    }
    this.outputs.push({ kind: "close", attempt: this.phase.attempt, reason: "Moved" });
    this.setOwner(owner);
    this.views.base.pause();
    this.views.cell.pause();
    this.heldAck.discard();
    this.downloads.pause();
    this.isMoving = true;
    this.retriesUntil = now + MOVED_WITHIN;
    this.tryNext(now, "locate");
  }

  /** Sets the owner at which the session continues, whatever its epoch is. */
  private setOwner(owner: bigint): void {
    if (this.session !== undefined) {
      this.session.owner = owner;
      this.session.epoch = 0n;
    }
  }

  private successorAnswered(now: number, next: Successor, body: Uint8Array): void {
    const answer = read(() => readHelloAnswer(body));
    if (answer?.kind !== "welcome" || !this.isOfSession(answer.welcome)) {
      // The present connection will be closed, and the base be located.
      return this.abandonSuccessor();
    }
    if (this.phase.kind === "playing") {
      this.outputs.push({ kind: "close", attempt: this.phase.attempt, reason: "Moved" });
    }
    this.takeOver(next);
    this.welcomed(now, next.attempt, answer.welcome);
  }

  /** The prepared connection takes the place of the present one. */
  private takeOver(next: Successor): void {
    this.successor = undefined;
    this.isMoving = true;
    if (this.session !== undefined) {
      this.session.base = next.located;
    }
  }

  private abandonSuccessor(): void {
    if (this.successor !== undefined) {
      this.outputs.push({ kind: "close", attempt: this.successor.attempt, reason: "Finished" });
      this.successor = undefined;
    }
  }

  /** A change to another process or owner has failed. It is an interruption, unless there is still time to try again. */
  private endMove(now: number, reason: CloseReason): void {
    if (this.isMoving && now >= this.retriesUntil) {
      this.isMoving = false;
      this.events.push({ kind: "lost", reason });
    }
  }

  private end(reason: EndReason): void {
    if (this.phase.kind !== "ended") {
      this.abandonSuccessor();
      this.phase = { kind: "ended" };
      this.events.push({ kind: "ended", reason });
      this.asks.ended(reason);
    }
  }
}

/** What was read; `undefined` if it is malformed. */
function read<T>(from: () => T): T | undefined {
  try {
    return from();
  } catch (error) {
    if (error instanceof Malformed) {
      return undefined;
    }
    throw error;
  }
}
