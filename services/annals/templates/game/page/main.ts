/** The page: the log-in, and then the garden. */
import { Client, type EntityId, type Event, type TypedEntity, Types } from "./client/index.js";
import { Scene } from "./scene.js";
import { Walker } from "./walker.js";
import { CLIENT_SCHEMA, WORLD, type World } from "./world.js";

type Avatar = TypedEntity<World["Avatar"]>;

/** Maximum lines of the talk. */
const MAX_LINES = 8;

function byId<E extends HTMLElement>(id: string, type: new () => E): E {
  const element = document.getElementById(id);
  if (!(element instanceof type)) {
    throw new Error(`the page has no ${id}`);
  }
  return element;
}

const enter = byId("enter", HTMLFormElement);
const play = byId("play", HTMLElement);
const canvas = byId("scene", HTMLCanvasElement);
const lines = byId("lines", HTMLOListElement);
const words = byId("words", HTMLInputElement);

/** One player, from the log-in to the end of the session. */
class Game {
  private readonly client: Client;
  private readonly types = new Types<World>(WORLD);
  private readonly avatars = this.types.of("Avatar");
  private readonly bushes = this.types.of("Bush");
  private readonly scene: Scene;
  private readonly walker: Walker;
  private readonly ending = new AbortController();
  /** The avatar that has been given the player's name. */
  private introduced: EntityId | undefined;

  constructor(
    private readonly name: string,
    password: string,
  ) {
    this.avatars.onCall("onSay", (avatar, text) => this.said(nameOf(avatar), text));
    this.client = new Client({
      // The server of this page passes both on to the realm.
      url: `ws://${location.host}/login`,
      resolve: ({ port }) => `ws://${location.host}/base/${port}`,
      webTransport: false,
      name,
      password,
      world: { schema: CLIENT_SCHEMA, types: WORLD },
      onEvent: (event) => this.take(event),
    });
    this.scene = new Scene(canvas);
    this.walker = new Walker(canvas, this.ending.signal, (x, y) => this.scene.worldAt(x, y));
    const { signal } = this.ending;
    byId("chat", HTMLFormElement).addEventListener("submit", (event) => this.submit(event), { signal });
    byId("leave", HTMLButtonElement).addEventListener("click", () => this.client.leave(), { signal });
    requestAnimationFrame((now) => this.frame(now, now));
  }

  /** The player's avatar, once it is in the garden. */
  private get own(): Avatar | undefined {
    const { controls } = this.client;
    return controls === undefined ? undefined : this.avatars.entity(this.client, controls);
  }

  private take(event: Event): void {
    if (event.kind === "ended") {
      this.end(event);
    } else if (event.kind === "placed" && event.entity === this.client.controls) {
      this.walker.put();
    } else if (event.kind === "controls") {
      this.walker.put();
    } else {
      this.types.dispatch(this.client, event);
    }
  }

  private said(who: string, text: string): void {
    const line = document.createElement("li");
    const name = document.createElement("b");
    name.textContent = who;
    line.append(name, ` ${text}`);
    lines.append(line);
    while (lines.childElementCount > MAX_LINES) {
      lines.firstElementChild?.remove();
    }
  }

  /** A new avatar has no name. */
  private introduce(own: Avatar): void {
    if (own.place !== undefined && own.id !== this.introduced) {
      this.introduced = own.id;
      own.cell.introduce(this.name);
    }
  }

  private submit(event: SubmitEvent): void {
    event.preventDefault();
    const text = words.value.trim();
    if (text !== "") {
      this.own?.cell.say(text);
    }
    words.value = "";
    canvas.focus();
  }

  private frame(now: number, before: number): void {
    if (this.ending.signal.aborted) {
      return;
    }
    const { own, client } = this;
    if (own !== undefined) {
      this.introduce(own);
    }
    const seconds = (now - before) / 1_000;
    const move = this.walker.step(now, seconds, own?.place, client.isPlaying);
    if (move !== undefined) {
      client.moveTo(move);
    }
    const [avatars, bushes] = [this.avatars.entities(client), this.bushes.entities(client)];
    this.scene.draw(seconds, { avatars, bushes }, own?.id, this.walker.place);
    const berries = own?.get("berries");
    byId("own-name", HTMLElement).textContent = own?.get("name") ?? "";
    byId("berries", HTMLElement).textContent = berries === undefined ? "" : `berries: ${berries}`;
    const state = byId("state", HTMLElement);
    state.hidden = client.isPlaying && own?.place !== undefined;
    state.textContent = client.isPlaying ? "entering the garden…" : "connecting…";
    requestAnimationFrame((next) => this.frame(next, now));
  }

  private end({ reason }: Event & { kind: "ended" }): void {
    this.ending.abort();
    if (reason.kind === "rejected" && reason.reason === "WrongSchema") {
      // The game has other definitions now, and this page too.
      location.reload();
    }
    show(false);
    byId("why", HTMLElement).textContent = describe(reason);
  }
}

/** An avatar's name; those of bots have none. */
function nameOf(avatar: Avatar): string {
  return avatar.get("name") || "somebody";
}

function describe(reason: (Event & { kind: "ended" })["reason"]): string {
  switch (reason.kind) {
    case "left":
      return "";
    case "banned": {
      const { until, reason: why } = reason.ban;
      return `This account is banned${until === undefined ? "" : ` until ${until.toLocaleString()}`}: ${why}`;
    }
    case "loginRefused":
      return reason.reason === "WrongPassword"
        ? "Another player has this name, or the password is wrong."
        : `The log-in was refused: ${reason.reason}.`;
    default:
      return `The session has ended: ${reason.reason}.`;
  }
}

/** Shows the garden, or the log-in. */
function show(isPlaying: boolean): void {
  enter.hidden = isPlaying;
  play.hidden = !isPlaying;
  lines.replaceChildren();
}

enter.addEventListener("submit", (event) => {
  event.preventDefault();
  show(true);
  canvas.focus();
  new Game(byId("name", HTMLInputElement).value.trim(), byId("password", HTMLInputElement).value);
});
