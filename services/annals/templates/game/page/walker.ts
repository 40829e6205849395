/** The player's own movement: by keys, or towards a point. */
import type { Place } from "./client/index.js";
import type { Point } from "./scene.js";

/** Metres per second. */
const SPEED = 5;
/** Milliseconds between two movements that are sent: a tick of a cell. */
const SEND_EVERY = 100;
/** Metres to a point at which the player has arrived. */
const ARRIVED = 0.2;
/** The longest step, seconds: a page in the background gets few frames. */
const LONGEST_STEP = 0.1;

const KEYS: Readonly<Record<string, readonly [x: number, z: number]>> = {
  ArrowUp: [0, 1], KeyW: [0, 1],
  ArrowDown: [0, -1], KeyS: [0, -1],
  ArrowLeft: [-1, 0], KeyA: [-1, 0],
  ArrowRight: [1, 0], KeyD: [1, 0],
};

export class Walker {
  private readonly pressed = new Set<string>();
  private aim: Point | undefined;
  private at: { x: number; y: number; z: number; yaw: number } | undefined;
  private sentAt = 0;
  private isSent = true;

  /** Listens until the signal. */
  constructor(canvas: HTMLCanvasElement, signal: AbortSignal, worldAt: (x: number, y: number) => Point) {
    addEventListener("keyup", ({ code }) => this.pressed.delete(code), { signal });
    addEventListener("blur", () => this.pressed.clear(), { signal });
    canvas.addEventListener(
      "keydown",
      (event) => {
        if (event.code in KEYS && !event.ctrlKey && !event.metaKey && !event.altKey) {
          event.preventDefault();
          this.aim = undefined;
          this.pressed.add(event.code);
        }
      },
      { signal },
    );
    const walk = ({ offsetX, offsetY, buttons }: PointerEvent) => {
      if (buttons !== 0) {
        this.aim = worldAt(offsetX, offsetY);
      }
    };
    canvas.addEventListener("pointerdown", walk, { signal });
    canvas.addEventListener("pointermove", walk, { signal });
  }

  /** Where the player has walked. */
  get place(): Point | undefined {
    return this.at;
  }

  /** The realm has put the player somewhere: the next step begins there. */
  put(): void {
    this.at = undefined;
  }

  /** To be called with each frame: `seconds` since the last one. Returns a place that is to be sent to the realm. */
  step(now: number, seconds: number, known: Place | undefined, isPlaying: boolean): Place | undefined {
    if (known === undefined) {
      this.at = undefined;
      return undefined;
    }
    const { position, direction } = known;
    const at = (this.at ??= { ...position, yaw: direction.yaw });
    // Steps that cannot be sent would have to be taken back.
    const way = isPlaying ? this.way(at) : undefined;
    if (way !== undefined) {
      const step = Math.min(SPEED * Math.min(seconds, LONGEST_STEP), way.length);
      at.x += way.x * step;
      at.z += way.z * step;
      at.yaw = Math.atan2(way.x, way.z);
      this.isSent = false;
    }
    if (this.isSent || !isPlaying || now - this.sentAt < SEND_EVERY) {
      return undefined;
    }
    this.sentAt = now;
    this.isSent = true;
    return { position: { x: at.x, y: at.y, z: at.z }, direction: { yaw: at.yaw, pitch: 0, roll: 0 } };
  }

  /** A unit vector, and how far to go that way. */
  private way(at: Point): (Point & { readonly length: number }) | undefined {
    let [x, z] = [0, 0];
    for (const code of this.pressed) {
      const [keyX, keyZ] = KEYS[code] ?? [0, 0];
      [x, z] = [x + keyX, z + keyZ];
    }
    if (x !== 0 || z !== 0) {
      const length = Math.hypot(x, z);
      return { x: x / length, z: z / length, length: Infinity };
    }
    if (this.aim === undefined) {
      return undefined;
    }
    [x, z] = [this.aim.x - at.x, this.aim.z - at.z];
    const length = Math.hypot(x, z);
    if (length < ARRIVED) {
      this.aim = undefined;
      return undefined;
    }
    return { x: x / length, z: z / length, length };
  }
}
