/** The session of one player: typed calls and properties of the sample world, and what the page shows of it. */
import {
  CallError,
  Client,
  type Entity,
  type EntityId,
  type Event,
  type TransportName,
  type TypedEntity,
  Types,
  type WebTransportAccess,
} from "../../client-ts/src/index.js";
import { refusal } from "./refusals.js";
import { Tally } from "./tally.js";
import { Trades } from "./trades.js";
import { type AvatarBaseCalls, CLIENT_SCHEMA, TypeId, WORLD, type World } from "./world.js";

/** Milliseconds between two pings, which show that calls take effect once and in order. */
const PING_EVERY = 500;
/** Maximum characters of an avatar's name; the game refuses longer ones. */
const MAX_NAME = 32;

/** What a player enters to come in. */
export interface Entry {
  readonly name: string;
  readonly password: string;
  /** Whether the account is to be created. */
  readonly register: boolean;
}

/** A place in the queue of a full realm: 1 for the next one, of so many. */
export interface QueuePlace {
  readonly position: number;
  readonly length: number;
}

/** What the page shows of an event. */
export interface Watcher {
  /** A notice to the player, shown once. */
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

export class Game {
  readonly tally = new Tally();
  readonly trades: Trades;
  private readonly client: Client;
  private readonly types = new Types<World>(WORLD);
  private readonly avatars = this.types.of("Avatar");
  private readonly monsters = this.types.of("Monster");
  private readonly chests = this.types.of("Chest");
  private readonly accounts = this.types.of("Account");
  /** The player's name. */
  readonly name: string;
  /** The player's place in the queue, while the realm is full. */
  queue: QueuePlace | undefined;
  /** Whether the player was logged in. */
  wasIn = false;
  private nextPing = 0;

  constructor(
    { name, password, register }: Entry,
    webTransport: WebTransportAccess | false,
    private readonly watcher: Watcher,
  ) {
    this.name = name;
    this.trades = new Trades(this, watcher);
    this.listen();
    this.client = new Client({
      // The server of this page passes WebSockets on to the realm. WebTransport reaches the realm itself.
      url: `ws://${location.host}/login`,
      resolve: ({ port }) => `ws://${location.host}/base/${port}`,
      webTransport,
      name,
      password,
      register,
      world: { schema: CLIENT_SCHEMA, types: WORLD },
      onEvent: (event) => this.take(event),
    });
  }

  get isPlaying(): boolean {
    return this.client.isPlaying;
  }

  /** Whether the player moves its own entity, and not another driver that the game has chosen. */
  get drivesOwn(): boolean {
    const own = this.client.controls;
    return own !== undefined && this.client.drives(own);
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

  avatar(id: EntityId): TypedEntity<World["Avatar"]> | undefined {
    return this.avatars.entity(this.client, id);
  }

  monster(id: EntityId): TypedEntity<World["Monster"]> | undefined {
    return this.monsters.entity(this.client, id);
  }

  chest(id: EntityId): TypedEntity<World["Chest"]> | undefined {
    return this.chests.entity(this.client, id);
  }

  /** What an entity is called. */
  nameOf(entity: Entity): string {
    switch (entity.type.id) {
      case TypeId.Avatar:
        return this.avatar(entity.id)?.get("name") || "somebody";
      case TypeId.Monster:
        return "Monster";
      default:
        return entity.type.name;
    }
  }

  /** Health and maximum health of an entity that can be hurt. */
  healthOf(entity: Entity): readonly [hp: number, max: number] | undefined {
    const [avatar, monster] = [this.avatar(entity.id), this.monster(entity.id)];
    const hp = avatar?.get("hp") ?? monster?.get("hp");
    const max = avatar?.get("maxHp") ?? monster?.get("maxHp");
    return hp === undefined || max === undefined ? undefined : [hp, Math.max(1, max)];
  }

  /** The name of the avatar in view that trades under this number. */
  traderName(trader: bigint): string {
    const found = this.avatars.entities(this.client).find((avatar) => avatar.get("trader") === trader);
    return found === undefined ? `player ${trader}` : found.get("name") || "somebody";
  }

  /** Calls the base part of the player's avatar. */
  ask(call: (base: AvatarBaseCalls) => void): void {
    const own = this.own && this.avatar(this.own.id);
    if (own !== undefined) {
      this.attempt(() => call(own.base));
    }
  }

  say(text: string): void {
    const { own } = this;
    if (own !== undefined) {
      this.attempt(() => this.avatar(own.id)?.cell.say(text));
    }
  }

  wave(to: EntityId): void {
    this.attempt(() => this.avatar(to)?.cell.wave());
  }

  strike(monster: EntityId): void {
    this.attempt(() => this.monster(monster)?.cell.strike());
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
      this.ask((base) => base.ping(number));
    }
  }

  private attempt(call: () => void): void {
    try {
      call();
    } catch (error) {
      // Too many calls wait for their confirmation.
      if (!(error instanceof CallError)) {
        throw error;
      }
      this.watcher.notice(error.message);
    }
  }

  /** What the page does when a client method is called. */
  private listen(): void {
    const { accounts, avatars, monsters, tally, trades, watcher } = this;
    accounts.onCall("onAvatars", (account, names) => this.enter(account, names));
    accounts.onCall("onRefused", (_, reason) => watcher.notice(reason));
    avatars.onCall("onPong", (_, number) => tally.pong(number, performance.now()));
    avatars.onCall("onSay", ({ id }, text) => watcher.said(id, text));
    avatars.onCall("onWave", ({ id }) => watcher.over(id, "is waved at"));
    avatars.onCall("onDamage", ({ id }, damage) => watcher.over(id, `−${damage}`));
    avatars.onCall("onHoldings", (_, holdings) => trades.hold(holdings));
    avatars.onCall("onTrade", (_, table) => trades.show(table));
    avatars.onCall("onOutcome", (_, what, done, said) => trades.outcome(what, done !== 0, said));
    monsters.onCall("onGrowl", ({ id }) => watcher.over(id, "growls"));
    monsters.onCall("onDamage", ({ id }, damage) => watcher.over(id, `−${damage}`));
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
        return this.types.dispatch(this.client, event);
      case "placed":
        if (event.entity === this.client.controls) {
          this.watcher.put();
        }
        return;
      case "queued":
        this.queue = event;
        break;
      case "controls":
      case "connected":
        this.queue = undefined;
        this.wasIn = true;
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

  /** The account is logged in: plays its first avatar, or a new one. */
  private enter(account: TypedEntity<World["Account"]>, [known]: readonly string[]): void {
    if (known !== undefined) {
      return this.attempt(() => account.base.enterWorld(known));
    }
    const name = [...this.name].slice(0, MAX_NAME).join("");
    this.attempt(() => account.base.createAvatar(name, { hair: 1, skin: 1, outfit: [1, 1, 1, 1] }));
  }
}

function describe(reason: (Event & { kind: "ended" })["reason"]): string {
  switch (reason.kind) {
    case "left":
      return "You have left.";
    case "loginRefused":
      return refusal(reason.reason);
    case "rejected":
      return reason.reason === "WrongSchema"
        ? "The realm has other definitions than this page: run make play again."
        : `The session has ended: ${reason.reason}.`;
    case "banned": {
      const { until, reason: why } = reason.ban;
      return `This account is banned${until === undefined ? "" : ` until ${until.toLocaleString()}`}: ${why}`;
    }
    case "closed":
      return `The connection was closed: ${reason.reason}.`;
  }
}
