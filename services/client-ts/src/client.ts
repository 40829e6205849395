import { CallFailed, type ReturnValues } from "./asks.js";
import { type Listener, Patience, type TransportName } from "./connection.js";
import type { Event } from "./events.js";
import { type Credentials, type Located, isQueued } from "./frames.js";
import { ClientCore, type Output, type World } from "./session.js";
import type { SpaceData } from "./space_data.js";
import { Choice, ChosenConnection } from "./transports.js";
import type { WebTransportTarget } from "./web_transport.js";
import type { EntityId, Part, Place, TypeDescription, Value } from "./world.js";

/** The protocols of login and of play: the subprotocol of a WebSocket, and the path of a session by WebTransport. */
const LOGIN = { webSocket: "annals-login.1", path: "/annals-login.2" };
const PLAY = { webSocket: "annals-play.1", path: "/annals-play.2" };

export type Options = Credentials & {
  /** URL of the login service, such as `wss://play.example.org:7700`. */
  readonly url: string;
  /** The world that was generated from the realm's definitions: its `CLIENT_SCHEMA` and `WORLD`. */
  readonly world: World;
  /** Called with each event, in order. */
  readonly onEvent: (event: Event) => void;
  /**
   * The URL of a base at this address. A certificate names hosts, so where bases have one certificate each for a name,
   * this maps addresses to names. By default the address is used, and `localhost` for that of this machine.
   */
  readonly resolve?: (address: Address) => string;
  /**
   * How WebTransport reaches the realm, where the platform has it; `false` for WebSockets only. By default it is tried
   * at the URLs of WebSockets that begin with `wss:`.
   */
  readonly webTransport?: WebTransportAccess | false;
};

/** The address of a base. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

/** How WebTransport reaches the realm. */
export interface WebTransportAccess {
  /** URL of the login service, such as `https://play.example.org:7700`. By default that of the WebSocket. */
  readonly url?: string;
  /** The URL of a base at this address. By default that of the WebSocket. */
  readonly resolve?: (address: Address) => string;
  /**
   * The SHA-256 hashes of development certificates. Called before each connection, since these are renewed every few
   * days. Without it, certificates are checked as usual.
   */
  readonly certificateHashes?: () => Promise<readonly Uint8Array[]>;
}

/** How a call waits for its answer. */
export interface AskOptions {
  /** Milliseconds until the wait ends without an answer; by default 30 000. */
  readonly timeoutMs?: number;
}

/** An entity in view. Its values are those that were shown, and change with the next frame: copy what is to be kept. */
export interface Entity {
  readonly id: EntityId;
  readonly type: TypeDescription;
  /** `undefined` until the entity's cell part is in view. */
  readonly place: Place | undefined;
  /** The value of a property by its name; `undefined` if its part is not in view. */
  property(name: string): Value | undefined;
}

function defaultUrl({ host, port }: { readonly host: string; readonly port: number }): string {
  const isLocal = host.startsWith("127.") || host === "[0:0:0:0:0:0:0:1]";
  return `wss://${isLocal ? "localhost" : host}:${port}`;
}

/** The URL for WebTransport where a WebSocket has this one; `undefined` if that is not encrypted. */
function secureUrl(url: string): string | undefined {
  return url.startsWith("wss:") ? url.replace("wss:", "https:") : undefined;
}

/** A client in a realm. It logs in at once, and resumes its session by itself until it ends. */
export class Client {
  private readonly core: ClientCore;
  private readonly connections = new Map<number, ChosenConnection>();
  private readonly patience = new Patience();
  private readonly choice = new Choice();
  /** What to do when a call has settled, by the core's id. */
  private readonly asked = new Map<number, (outcome: ReturnValues | CallFailed) => void>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private isCarryingOut = false;

  constructor(private readonly options: Options) {
    this.core = new ClientCore(options.world, options, Math.random);
    this.handle(() => this.core.start(this.now()));
  }

  /** The entity that the client controls. */
  get controls(): EntityId | undefined {
    return this.core.controls?.entity;
  }

  get isPlaying(): boolean {
    return this.core.isPlaying;
  }

  /** What carries the connection on which the client plays. */
  get transport(): TransportName | undefined {
    const attempt = this.core.playsOn;
    return attempt === undefined ? undefined : this.connections.get(attempt)?.transport;
  }

  /** Number of calls whose effects are not yet in the log. */
  get unconfirmedCalls(): number {
    return this.core.unconfirmedCalls;
  }

  /** The data of the space of the client's own entity. */
  get spaceData(): SpaceData | undefined {
    return this.core.views.cell.space?.data;
  }

  /** The time of day where the client's own entity is, seconds since midnight, if the space has one. */
  get timeOfDay(): number | undefined {
    const time = this.core.views.cell.gameTime(this.now());
    return time === undefined ? undefined : this.spaceData?.timeOfDay(time);
  }

  /** The entities in view. */
  entities(): Entity[] {
    const { base, cell } = this.core.views;
    const ids = new Set([...base.entities.keys(), ...cell.entities.keys()]);
    return [...ids].flatMap((id) => this.entity(id) ?? []);
  }

  /** An entity in view. */
  entity(id: EntityId): Entity | undefined {
    const type = this.core.typeOf(id);
    if (type === undefined) {
      return undefined;
    }
    const { views } = this.core;
    return {
      id,
      type,
      get place() {
        return views.cell.entities.get(id)?.place;
      },
      property(name) {
        const index = type.properties.findIndex((property) => property.name === name);
        const described = type.properties[index];
        return described && views[described.part].entities.get(id)?.values[index];
      },
    };
  }

  /**
   * Calls an exposed method of an entity in view; returns the call's number. The call is made exactly once, over
   * reconnections and the deaths of processes. Throws a `CallError` if there is no such method or the arguments do not
   * fit.
   */
  call(part: Part, entity: EntityId, method: string, args: readonly Value[]): bigint {
    return this.handle(() => this.core.call(this.now(), part, entity, method, args));
  }

  /**
   * Calls a two-way method as {@link call} does, and returns a promise of its return values. The promise is rejected
   * with a {@link CallFailed} if the server answers with an error or refuses the call, the called part is gone, no
   * answer comes in time, or the client ends; then after the event `ended`. Throws a `CallError` if the call was not
   * made; so also for a one-way method, and while 960 calls wait for answers.
   */
  ask(
    part: Part,
    entity: EntityId,
    method: string,
    args: readonly Value[],
    { timeoutMs }: AskOptions = {},
  ): Promise<ReturnValues> {
    return this.handle(() => {
      const id = this.core.ask(this.now(), part, entity, method, args, timeoutMs);
      return new Promise((resolve, reject) => {
        this.asked.set(id, (outcome) => (outcome instanceof CallFailed ? reject(outcome) : resolve(outcome)));
      });
    });
  }

  /** Moves the entity that the client controls, as {@link moveEntity} does. */
  moveTo(place: Place): boolean {
    return this.handle(() => this.core.moveTo(this.now(), place));
  }

  /**
   * Moves an entity that the client {@link drives}. Returns whether it was sent: there is a connection, and the client
   * drives the entity. Throws a `RangeError` if a number is not finite in 32 bits.
   */
  moveEntity(entity: EntityId, place: Place): boolean {
    return this.handle(() => this.core.moveEntity(this.now(), entity, place));
  }

  /**
   * Whether the client moves this entity: its own, unless behaviour has chosen another driver, or one of which behaviour
   * has chosen this client's entity as the driver (event `drives`).
   */
  drives(entity: EntityId): boolean {
    return this.core.drives(entity);
  }

  /** Ends the session. The last event follows at once. */
  leave(): void {
    this.handle(() => this.core.leave());
  }

  private now(): number {
    return performance.now();
  }

  /** Runs something on the core, and carries out what follows from it. */
  private handle<T>(run: () => T): T {
    try {
      return run();
    } finally {
      this.carryOut();
    }
  }

  private carryOut(): void {
    // A handler of an event may call the client: what follows from that is carried out by the loop that is running.
    if (this.isCarryingOut) {
      return;
    }
    this.isCarryingOut = true;
    try {
      const take = () => [this.core.takeOutputs(), this.core.takeEvents(), this.core.takeSettled()] as const;
      let [outputs, events, settled] = take();
      while (outputs.length > 0 || events.length > 0 || settled.length > 0) {
        outputs.forEach((output) => this.execute(output));
        for (const event of events) {
          try {
            this.options.onEvent(event);
          } catch (error) {
            // Reported as any uncaught error is: it neither stops the session nor reaches the caller.
            queueMicrotask(() => {
              throw error;
            });
          }
        }
        for (const { id, outcome } of settled) {
          this.asked.get(id)?.(outcome);
          this.asked.delete(id);
        }
        [outputs, events, settled] = take();
      }
    } finally {
      this.isCarryingOut = false;
      this.schedule();
    }
  }

  private schedule(): void {
    clearTimeout(this.timer);
    const due = this.core.deadline();
    if (due !== Infinity) {
      const wait = Math.max(0, Math.ceil(due - this.now()));
      this.timer = setTimeout(() => this.handle(() => this.core.tick(this.now())), wait);
    }
  }

  private execute(output: Output): void {
    const { attempt } = output;
    switch (output.kind) {
      case "login":
        return this.request(attempt, output.body);
      case "connect":
        return this.connect(attempt, output.to);
      case "frame":
        return this.connections.get(attempt)?.frame(output.body);
      case "datagram":
        return this.connections.get(attempt)?.datagram(output.bytes);
      case "close":
        this.connections.get(attempt)?.close(output.reason);
        this.connections.delete(attempt);
    }
  }

  /** Sends one request to the login service. */
  private request(attempt: number, body: Uint8Array): void {
    const answered = (answer: Uint8Array | undefined) => {
      this.connections.delete(attempt);
      this.handle(() => this.core.loginAnswered(this.now(), attempt, answer));
    };
    const { url, webTransport } = this.options;
    this.open(attempt, LOGIN, () => url, () => (webTransport || undefined)?.url ?? secureUrl(url), {
      connected: () => this.connections.get(attempt)?.frame(body),
      frame: (answer) => {
        if (isQueued(answer)) {
          return this.handle(() => this.core.loginAnswered(this.now(), attempt, answer));
        }
        this.connections.get(attempt)?.close("Finished");
        answered(answer);
      },
      datagram: () => {},
      closed: () => answered(undefined),
    });
  }

  private connect(attempt: number, to: Located): void {
    const { resolve = defaultUrl, webTransport } = this.options;
    const direct = () => (webTransport || undefined)?.resolve?.(to) ?? secureUrl(resolve(to));
    this.open(attempt, PLAY, () => resolve(to), direct, {
      connected: () => this.handle(() => this.core.connected(this.now(), attempt)),
      frame: (body) => this.handle(() => this.core.frame(this.now(), attempt, body)),
      datagram: (bytes) => this.handle(() => this.core.datagram(this.now(), attempt, bytes)),
      closed: (reason) => {
        this.connections.delete(attempt);
        this.handle(() => this.core.disconnected(this.now(), attempt, reason));
      },
    });
  }

  private open(
    attempt: number,
    protocol: typeof LOGIN,
    url: () => string,
    direct: () => string | undefined,
    listener: Listener,
  ): void {
    const { webTransport } = this.options;
    const target = async (): Promise<WebTransportTarget | undefined> => {
      const base = direct();
      const certificateHashes = (await (webTransport || undefined)?.certificateHashes?.()) ?? [];
      return base === undefined ? undefined : { url: new URL(protocol.path, base).href, certificateHashes };
    };
    const route = { protocol: protocol.webSocket, url, webTransport: webTransport === false ? undefined : target };
    this.connections.set(attempt, new ChosenConnection(route, this.patience, this.choice, listener));
  }
}
