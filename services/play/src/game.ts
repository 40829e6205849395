/** The session of one player: typed calls and properties of the sample world, and what the page shows of it. */
import {
  CallError,
  Client,
  type Entity,
  type EntityId,
  type Event,
  type TransportName,
  type Value,
  type WebTransportAccess,
} from "../../client-ts/src/index.js";
import { Tally } from "./tally.js";
import { Trades } from "./trades.js";
import {
  type AccountBaseCalls,
  type AccountHandlers,
  type AvatarBaseCalls,
  type AvatarCellCalls,
  type AvatarHandlers,
  type AvatarView,
  CLIENT_SCHEMA,
  type ChestView,
  type MonsterCellCalls,
  type MonsterHandlers,
  type MonsterView,
  TypeId,
  WORLD,
} from "./world.js";

/** Milliseconds between two pings, which show that calls take effect once and in order. */
const PING_EVERY = 500;
/** Maximum characters of an avatar's name; the game refuses longer ones. */
const MAX_NAME = 32;

/** What the page shows of an event. */
export interface Watcher {
  /** Something that the player is told, once. */
  notice(text: string): void;
  /** Somebody speaks. */
  said(who: EntityId, text: string): void;
  /** Something short over the head of an entity. */
  over(entity: EntityId, text: string): void;
  /** The player's own entity was put somewhere. */
  put(): void;
  /** Connection, holdings or trades have changed. */
  changed(): void;
  ended(why: string): void;
}

type Handlers = Partial<AvatarHandlers & MonsterHandlers & AccountHandlers>;

export class Game {
  readonly tally = new Tally();
  readonly trades: Trades;
  private readonly client: Client;
  private nextPing = 0;

  constructor(
    readonly name: string,
    password: string,
    webTransport: WebTransportAccess | false,
    private readonly watcher: Watcher,
  ) {
    this.trades = new Trades(this, watcher);
    this.client = new Client({
      // The server of this page passes WebSockets on to the realm. WebTransport reaches the realm itself.
      url: `ws://${location.host}/login`,
      resolve: ({ port }) => `ws://${location.host}/base/${port}`,
      webTransport,
      name,
      password,
      world: { schema: CLIENT_SCHEMA, types: WORLD },
      onEvent: (event) => this.take(event),
    });
  }

  get isPlaying(): boolean {
    return this.client.isPlaying;
  }

  /** What carries the connection to the realm. */
  get transport(): TransportName | undefined {
    return this.client.transport;
  }

  get unconfirmedCalls(): number {
    return this.client.unconfirmedCalls;
  }

  /** The player's avatar, once it is in the world. */
  get own(): Entity | undefined {
    const { controls } = this.client;
    const own = controls === undefined ? undefined : this.client.entity(controls);
    return own?.type.id === TypeId.Avatar ? own : undefined;
  }

  entities(): Entity[] {
    return this.client.entities();
  }

  entity(id: EntityId): Entity | undefined {
    return this.client.entity(id);
  }

  /** Whether an entity is still where it was, with its cell part in view. */
  isInView(id: EntityId): boolean {
    return this.client.entity(id)?.place !== undefined;
  }

  avatar<K extends keyof AvatarView>(entity: Entity, name: K): AvatarView[K] | undefined {
    return entity.property(name) as AvatarView[K] | undefined;
  }

  monster<K extends keyof MonsterView>(entity: Entity, name: K): MonsterView[K] | undefined {
    return entity.property(name) as MonsterView[K] | undefined;
  }

  chest<K extends keyof ChestView>(entity: Entity, name: K): ChestView[K] | undefined {
    return entity.property(name) as ChestView[K] | undefined;
  }

  /** What an entity is called. */
  nameOf(entity: Entity): string {
    switch (entity.type.id) {
      case TypeId.Avatar:
        return this.avatar(entity, "name") || "somebody";
      case TypeId.Monster:
        return "Monster";
      default:
        return entity.type.name;
    }
  }

  /** Health and maximum health of an entity that can be hurt. */
  healthOf(entity: Entity): readonly [hp: number, max: number] | undefined {
    const [hp, max] =
      entity.type.id === TypeId.Avatar
        ? [this.avatar(entity, "hp"), this.avatar(entity, "maxHp")]
        : entity.type.id === TypeId.Monster
          ? [this.monster(entity, "hp"), this.monster(entity, "maxHp")]
          : [];
    return hp === undefined || max === undefined ? undefined : [hp, Math.max(1, max)];
  }

  /** The name of the avatar in view that trades under this number. */
  traderName(trader: bigint): string {
    const found = this.entities().find((entity) => entity.type.id === TypeId.Avatar && this.avatar(entity, "trader") === trader);
    return found === undefined ? `player ${trader}` : this.nameOf(found);
  }

  /** Calls the base part of the player's avatar. */
  ask<K extends keyof AvatarBaseCalls>(method: K, ...args: Parameters<AvatarBaseCalls[K]>): void {
    const { own } = this;
    if (own !== undefined) {
      this.call("base", own.id, method, args);
    }
  }

  say(text: string): void {
    const { own } = this;
    if (own !== undefined) {
      this.onAvatar(own.id, "say", text);
    }
  }

  wave(to: EntityId): void {
    this.onAvatar(to, "wave");
  }

  strike(monster: EntityId): void {
    const method: keyof MonsterCellCalls = "strike";
    this.call("cell", monster, method, []);
  }

  /** Moves the avatar; returns whether that was sent. */
  moveTo(x: number, y: number, z: number, yaw: number): boolean {
    return this.client.moveTo({ position: { x, y, z }, direction: { yaw, pitch: 0, roll: 0 } });
  }

  leave(): void {
    this.client.leave();
  }

  /** To be called often. */
  tick(now: number): void {
    // Without a cell part nothing answers.
    if (now < this.nextPing || this.own?.place === undefined) {
      return;
    }
    this.nextPing = now + PING_EVERY;
    const number = this.tally.nextPing(now);
    if (number !== undefined) {
      this.ask("ping", number);
    }
  }

  private onAvatar<K extends keyof AvatarCellCalls>(id: EntityId, method: K, ...args: Parameters<AvatarCellCalls[K]>): void {
    this.call("cell", id, method, args);
  }

  private call(part: "base" | "cell", entity: EntityId, method: string, args: readonly unknown[]): void {
    try {
      this.client.call(part, entity, method, args as readonly Value[]);
    } catch (error) {
      // Among others: the entity has just left the view.
      if (!(error instanceof CallError)) {
        throw error;
      }
      this.watcher.notice(error.message);
    }
  }

  private take(event: Event): void {
    const now = performance.now();
    switch (event.kind) {
      case "lost":
        this.tally.interrupted(now);
        break;
      case "resumed":
        this.tally.resumed(now);
        break;
      case "shown":
        this.tally.see(event.part, event.entity, event.number);
        if (event.shown.kind === "method") {
          const method = this.client.entity(event.entity)?.type.methods[event.shown.method]?.name;
          this.hear(event.entity, method, event.shown.args);
        }
        return;
      case "placed":
        if (event.entity === this.client.controls) {
          this.watcher.put();
        }
        return;
      case "controls":
      case "connected":
        this.watcher.put();
        break;
      case "callRefused":
        this.watcher.notice(`a call was refused: ${event.reason}`);
        break;
      case "ended":
        return this.watcher.ended(describe(event.reason));
      default:
        return;
    }
    this.watcher.changed();
  }

  /** A client method was called. The generated types say which arguments it has. */
  private hear(entity: EntityId, method: string | undefined, args: readonly Value[]): void {
    const handler = this.handlers(entity)[method as keyof Handlers] as ((...args: unknown[]) => void) | undefined;
    handler?.(...args);
  }

  private handlers(entity: EntityId): Handlers {
    const { watcher, trades } = this;
    return {
      onAvatars: (names) => this.enter(names),
      onRefused: (reason) => watcher.notice(reason),
      onPong: (number) => this.tally.pong(number, performance.now()),
      onSay: (text) => watcher.said(entity, text),
      onWave: () => watcher.over(entity, "is waved at"),
      onGrowl: () => watcher.over(entity, "growls"),
      onDamage: (damage) => watcher.over(entity, `−${damage}`),
      onHoldings: (holdings) => trades.hold(holdings),
      onTrade: (table) => trades.show(table),
      onOutcome: (what, done, said) => trades.outcome(what, done !== 0, said),
    };
  }

  /** The account is logged in: plays its first avatar, or a new one. */
  private enter(names: readonly string[]): void {
    const { controls } = this.client;
    if (controls === undefined) {
      return;
    }
    const [known] = names;
    const create: keyof AccountBaseCalls = "createAvatar";
    const enter: keyof AccountBaseCalls = "enterWorld";
    if (known !== undefined) {
      return this.call("base", controls, enter, [known]);
    }
    const name = [...this.name].slice(0, MAX_NAME).join("");
    this.call("base", controls, create, [name, { hair: 1, skin: 1, outfit: [1, 1, 1, 1] }]);
  }
}

function describe(reason: (Event & { kind: "ended" })["reason"]): string {
  switch (reason.kind) {
    case "left":
      return "You have left.";
    case "loginRefused":
      return reason.reason === "WrongPassword"
        ? "The password is not the one with which this name was first used."
        : `The log-in was refused: ${reason.reason}.`;
    case "rejected":
      return reason.reason === "WrongSchema"
        ? "The realm has other definitions than this page: run make play again."
        : `The session has ended: ${reason.reason}.`;
    case "closed":
      return `The connection was closed: ${reason.reason}.`;
  }
}
