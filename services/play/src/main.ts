/** The page: the log-in, and then one session after the other. */
import type { EntityId, WebTransportAccess } from "../../client-ts/src/index.js";
import { findDirect } from "./direct.js";
import { button, byId, make, setText } from "./elements.js";
import { type Entry, Game } from "./game.js";
import { RealmPanel } from "./realm_panel.js";
import { Scene } from "./scene.js";
import { TradePanel } from "./trade_panel.js";
import { Walker } from "./walker.js";
import { TypeId } from "./world.js";

/** Milliseconds that a notice is shown, and maximum notices at a time. */
const NOTICE_FOR = 5_000;
const MAX_NOTICES = 2;
/** Maximum lines of the chat. */
const MAX_LINES = 200;
/** Milliseconds between two updates of the panels. */
const PANELS_EVERY = 200;
/** Milliseconds between two updates of the list of what is in view. */
const WORDS_EVERY = 500;
/** A press of a pointer up to this long, in milliseconds, selects or sends the player to a point. */
const TAP = 250;

const form = byId("enter", HTMLFormElement);
const play = byId("play", HTMLElement);
const canvas = byId("scene", HTMLCanvasElement);
const notices = byId("notices", HTMLElement);
const seen = byId("seen", HTMLUListElement);
const lines = byId("lines", HTMLOListElement);
const words = byId("words", HTMLInputElement);

function notice(text: string): void {
  const element = make("p", "", text);
  notices.append(element);
  while (notices.childElementCount > MAX_NOTICES) {
    notices.firstElementChild?.remove();
  }
  setTimeout(() => element.remove(), NOTICE_FOR);
}

/** One session of a player. */
class Session {
  private readonly game: Game;
  private readonly walker: Walker;
  private readonly scene: Scene;
  private readonly trades: TradePanel;
  private readonly realm: RealmPanel;
  private readonly ending = new AbortController();
  private drawnAt = performance.now();
  private panelsAt = 0;
  private wordsAt = 0;
  private targetShown = "";
  private heldSince: number | undefined;
  private pointer = { x: 0, y: 0 };

  constructor(entry: Entry, webTransport: WebTransportAccess | false) {
    this.game = new Game(entry, webTransport, {
      notice,
      said: (who, text) => this.said(who, text),
      over: (entity, text) => this.scene.over(entity, text),
      put: () => this.walker.put(),
      changed: () => (this.panelsAt = 0),
      ended: (why) => this.end(why),
    });
    this.walker = new Walker(this.game);
    this.scene = new Scene(canvas, this.game, this.walker);
    this.trades = new TradePanel(this.game);
    this.realm = new RealmPanel(this.game, notice);
    this.listen();
    void this.realm.follow(this.ending.signal);
    this.frame(performance.now());
  }

  private listen(): void {
    const { signal } = this.ending;
    const isTyping = () => document.activeElement?.matches("input, select, textarea") ?? false;
    addEventListener("keydown", (event) => this.key(event, isTyping()), { signal });
    addEventListener("keyup", ({ code }) => this.walker.release(code), { signal });
    addEventListener("blur", () => this.walker.releaseAll(), { signal });
    addEventListener("pagehide", () => this.game.leave(), { signal });
    canvas.addEventListener("pointerdown", (event) => this.press(event), { signal });
    canvas.addEventListener("pointermove", (event) => (this.pointer = { x: event.offsetX, y: event.offsetY }), { signal });
    for (const end of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(end, () => this.release(), { signal });
    }
    byId("chat", HTMLFormElement).addEventListener(
      "submit",
      (event) => {
        event.preventDefault();
        const text = words.value.trim();
        if (text !== "") {
          this.game.say(text);
          words.value = "";
        }
      },
      { signal },
    );
    byId("leave", HTMLButtonElement).addEventListener("click", () => this.game.leave(), { signal });
  }

  private key(event: KeyboardEvent, isTyping: boolean): void {
    if (event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    if (isTyping) {
      if (event.code === "Escape") {
        canvas.focus();
      }
      return;
    }
    const isButton = document.activeElement instanceof HTMLButtonElement;
    if (this.walker.press(event.code)) {
      event.preventDefault();
    } else if (event.code === "Enter" && !isButton) {
      event.preventDefault();
      words.focus();
    } else if (event.code === "KeyF") {
      this.strike(this.scene.nearest(TypeId.Monster));
    } else if (event.code === "KeyT") {
      this.trade(this.scene.nearest(TypeId.Avatar));
    } else if (event.code === "KeyE") {
      this.wave(this.scene.nearest(TypeId.Avatar));
    }
  }

  private press(event: PointerEvent): void {
    canvas.focus();
    canvas.setPointerCapture(event.pointerId);
    this.pointer = { x: event.offsetX, y: event.offsetY };
    const hit = this.scene.entityAt(event.offsetX, event.offsetY);
    if (hit !== undefined) {
      this.scene.selected = hit;
      this.panelsAt = 0;
      return;
    }
    this.heldSince = performance.now();
  }

  /** A tap sends the player to a point; the end of a hold stops it. */
  private release(): void {
    const { heldSince } = this;
    this.heldSince = undefined;
    if (heldSince === undefined) {
      return;
    }
    if (performance.now() - heldSince > TAP) {
      this.walker.stop();
    } else {
      const { x, z } = this.scene.worldAt(this.pointer.x, this.pointer.y);
      this.walker.walkTo(x, z);
    }
  }

  private frame(now: number): void {
    if (this.ending.signal.aborted) {
      return;
    }
    if (this.heldSince !== undefined && now - this.heldSince > TAP) {
      const { x, z } = this.scene.worldAt(this.pointer.x, this.pointer.y);
      this.walker.walkTo(x, z);
    }
    this.game.tick(now);
    this.walker.step(now, (now - this.drawnAt) / 1_000, (entity) => this.scene.drawnAt(entity));
    this.drawnAt = now;
    this.scene.draw(now);
    if (now >= this.panelsAt) {
      this.panelsAt = now + PANELS_EVERY;
      this.showPanels(now);
    }
    requestAnimationFrame((next) => this.frame(next));
  }

  private showPanels(now: number): void {
    const { game } = this;
    const { own } = game;
    const isIn = own?.place !== undefined;
    const { queue } = game;
    const entering =
      queue === undefined
        ? "entering the world…"
        : `The realm is full. You are number ${queue.position} of ${queue.length} in the queue.`;
    const state = !isIn ? entering : game.isPlaying ? "" : "connection lost, resuming…";
    const banner = byId("state", HTMLElement);
    banner.hidden = state === "";
    setText(banner, state);
    const health = own === undefined ? undefined : game.healthOf(own);
    setText(byId("own-name", HTMLElement), own === undefined ? game.name : game.nameOf(own));
    setText(byId("own-hp", HTMLElement), health === undefined ? "–" : String(health[0]));
    const { carried } = game.trades;
    setText(byId("own-coins", HTMLElement), carried === undefined ? "–" : String(carried.coins));
    setText(byId("own-swords", HTMLElement), carried === undefined ? "–" : String(carried.items.length));
    this.trades.show();
    this.realm.count();
    this.showTarget();
    if (now >= this.wordsAt) {
      this.wordsAt = now + WORDS_EVERY;
      seen.replaceChildren(...this.scene.inWords().map((text) => make("li", "", text)));
    }
  }

  /** The selected entity, and what can be done with it. */
  private showTarget(): void {
    const bar = byId("target", HTMLElement);
    const { selected } = this.scene;
    const entity = selected === undefined ? undefined : this.game.entity(selected);
    bar.hidden = entity === undefined;
    if (selected === undefined || entity === undefined) {
      this.targetShown = "";
      return;
    }
    const isAvatar = entity.type.id === TypeId.Avatar;
    const isMonster = entity.type.id === TypeId.Monster;
    const health = this.game.healthOf(entity);
    const isClosed = this.game.chest(entity.id)?.get("open") === 0;
    const detail = health !== undefined ? `${health[0]} health` : isClosed ? "closed" : "open";
    setText(byId("target-name", HTMLElement), this.game.nameOf(entity));
    setText(byId("target-detail", HTMLElement), detail);
    if (this.targetShown !== String(selected)) {
      this.targetShown = String(selected);
      byId("target-actions", HTMLElement).replaceChildren(
        ...(isAvatar
          ? [button("Trade", "", () => this.trade(selected)), button("Wave", "second", () => this.wave(selected))]
          : []),
        ...(isMonster ? [button("Strike", "", () => this.strike(selected))] : []),
        button("Close", "second", () => {
          this.scene.selected = undefined;
          this.panelsAt = 0;
        }),
      );
    }
  }

  private said(who: EntityId, text: string): void {
    this.scene.say(who, text);
    const entity = this.game.entity(who);
    const name = entity === undefined ? "somebody" : this.game.nameOf(entity);
    const isAtEnd = lines.scrollHeight - lines.scrollTop - lines.clientHeight < 40;
    lines.append(make("li", who === this.game.own?.id ? "own" : "", make("b", "", name), ` ${text}`));
    while (lines.childElementCount > MAX_LINES) {
      lines.firstElementChild?.remove();
    }
    if (isAtEnd) {
      lines.scrollTop = lines.scrollHeight;
    }
  }

  private trade(who: EntityId | undefined): void {
    const trader = who === undefined ? undefined : this.game.avatar(who)?.get("trader");
    if (who === undefined || trader === undefined || trader === 0n) {
      return notice("There is nobody here to trade with.");
    }
    this.scene.selected = who;
    this.game.trades.propose(trader);
    select("trade");
  }

  private wave(to: EntityId | undefined): void {
    if (to === undefined) {
      return notice("There is nobody here to wave at.");
    }
    this.game.wave(to);
  }

  private strike(monster: EntityId | undefined): void {
    if (monster === undefined) {
      return notice("There is no monster in view.");
    }
    this.scene.selected = monster;
    this.walker.approach(monster, () => {
      if (this.game.isInView(monster)) {
        this.game.strike(monster);
      }
    });
  }

  private end(why: string): void {
    this.ending.abort();
    show(false);
    if (this.game.wasIn) {
      // The account exists now.
      register.checked = false;
      checkRegistration();
    }
    setText(byId("why", HTMLElement), why);
  }
}

/** Shows the game, or the log-in. */
function show(isPlaying: boolean): void {
  form.hidden = isPlaying;
  play.hidden = !isPlaying;
  notices.replaceChildren();
}

/** Selects a panel, on screens that show one at a time. */
function select(panel: string): void {
  play.dataset["panel"] = panel;
  for (const tab of document.querySelectorAll<HTMLButtonElement>("#tabs button")) {
    tab.setAttribute("aria-pressed", String(tab.dataset["panel"] === panel));
  }
}

for (const tab of document.querySelectorAll<HTMLButtonElement>("#tabs button")) {
  tab.addEventListener("click", () => select(tab.dataset["panel"] ?? "talk"));
}
select("talk");
byId("close-receipt", HTMLButtonElement).addEventListener("click", () => byId("receipt", HTMLDialogElement).close());
const register = byId("register", HTMLInputElement);
const password = byId("password", HTMLInputElement);
const again = byId("again", HTMLInputElement);

/** Shows what a registration needs, and checks that both passwords are the same. */
function checkRegistration(): void {
  const isNew = register.checked;
  byId("registration", HTMLElement).hidden = !isNew;
  again.required = isNew;
  again.setCustomValidity(isNew && again.value !== password.value ? "The two passwords differ." : "");
  setText(byId("enter-button", HTMLButtonElement), isNew ? "Register and play" : "Play");
}

for (const input of [register, password, again]) {
  input.addEventListener("input", checkRegistration);
}
form.addEventListener("submit", (event) => {
  event.preventDefault();
  const name = byId("name", HTMLInputElement).value.trim();
  void enter({ name, password: password.value, register: register.checked });
});

async function enter(entry: Entry): Promise<void> {
  lines.replaceChildren();
  show(true);
  canvas.focus();
  new Session(entry, await findDirect());
}
