/** The player's own movement: by keys, towards a point, or towards an entity. */
import type { EntityId } from "../../client-ts/src/index.js";
import type { Game } from "./game.js";
import type { Drawn } from "./smooth.js";

/** Metres per second. */
const SPEED = 5;
/** Milliseconds between two movements that are sent: a tick of a cell. */
const SEND_EVERY = 100;
/** Metres to a point at which the player has arrived. */
const ARRIVED = 0.3;
/** Metres to an entity at which it can be reached. */
const REACH = 2.5;
/** The longest step, seconds: a page in the background gets few frames. */
const LONGEST_STEP = 0.1;

const KEYS: Readonly<Record<string, readonly [x: number, z: number]>> = {
  ArrowUp: [0, 1], KeyW: [0, 1],
  ArrowDown: [0, -1], KeyS: [0, -1],
  ArrowLeft: [-1, 0], KeyA: [-1, 0],
  ArrowRight: [1, 0], KeyD: [1, 0],
};

type Aim =
  | { readonly kind: "point"; readonly x: number; readonly z: number }
  | { readonly kind: "entity"; readonly entity: EntityId; readonly then: () => void };

export class Walker {
  private readonly pressed = new Set<string>();
  private aim: Aim | undefined;
  private at: { x: number; y: number; z: number; yaw: number } | undefined;
  private sentAt = 0;
  private isSent = true;

  constructor(private readonly game: Game) {}

  /** Where the player is drawn. */
  get place(): Drawn | undefined {
    return this.at;
  }

  /** The realm has put the player somewhere: the next step begins there. */
  put(): void {
    this.at = undefined;
  }

  /** A key by its `code`; returns whether it is one for walking. */
  press(code: string): boolean {
    if (!(code in KEYS)) {
      return false;
    }
    this.pressed.add(code);
    this.aim = undefined;
    return true;
  }

  release(code: string): void {
    this.pressed.delete(code);
  }

  releaseAll(): void {
    this.pressed.clear();
  }

  walkTo(x: number, z: number): void {
    this.aim = { kind: "point", x, z };
  }

  stop(): void {
    this.aim = undefined;
  }

  /** Goes to an entity, and does something there. */
  approach(entity: EntityId, then: () => void): void {
    this.aim = { kind: "entity", entity, then };
  }

  /** To be called with each frame: `seconds` since the last one, and where an entity is drawn. */
  step(now: number, seconds: number, drawnAt: (entity: EntityId) => Drawn | undefined): void {
    const place = this.game.own?.place;
    if (place === undefined || !this.game.drivesOwn) {
      this.at = undefined;
      return;
    }
    const { position, direction } = place;
    this.at ??= { x: position.x, y: position.y, z: position.z, yaw: direction.yaw };
    // Steps that cannot be sent would have to be taken back.
    const way = this.game.isPlaying ? this.way(this.at, drawnAt) : undefined;
    if (way !== undefined) {
      const [x, z, length] = way;
      const step = Math.min(SPEED * Math.min(seconds, LONGEST_STEP), length);
      this.at.x += x * step;
      this.at.z += z * step;
      this.at.yaw = Math.atan2(x, z);
      this.isSent = false;
    }
    if (!this.isSent && now - this.sentAt >= SEND_EVERY) {
      this.sentAt = now;
      this.isSent = this.game.moveTo(this.at.x, this.at.y, this.at.z, this.at.yaw);
    }
  }

  /** A unit vector, and how far to go that way. */
  private way(
    at: { readonly x: number; readonly z: number },
    drawnAt: (entity: EntityId) => Drawn | undefined,
  ): readonly [x: number, z: number, length: number] | undefined {
    const keys = [...this.pressed].flatMap((code) => (KEYS[code] === undefined ? [] : [KEYS[code]]));
    const [keyX, keyZ] = [keys.reduce((sum, [x]) => sum + x, 0), keys.reduce((sum, [, z]) => sum + z, 0)];
    if (keyX !== 0 || keyZ !== 0) {
      const length = Math.hypot(keyX, keyZ);
      return [keyX / length, keyZ / length, Infinity];
    }
    const { aim } = this;
    const to = aim?.kind === "entity" ? drawnAt(aim.entity) : aim;
    if (aim === undefined || to === undefined) {
      this.aim = undefined;
      return undefined;
    }
    const [x, z] = [to.x - at.x, to.z - at.z];
    const left = Math.hypot(x, z) - (aim.kind === "entity" ? REACH : 0);
    if (left <= ARRIVED) {
      this.aim = undefined;
      if (aim.kind === "entity") {
        aim.then();
      }
      return undefined;
    }
    const length = Math.hypot(x, z);
    return [x / length, z / length, left];
  }
}
