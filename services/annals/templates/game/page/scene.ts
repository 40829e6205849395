/** Draws the garden from above, with the player in the middle. */
import type { EntityId, TypedEntity } from "./client/index.js";
import type { World } from "./world.js";

/** Metres from the middle to the nearer edge of the canvas. */
const VIEW = 20;
/** Metres between two lines of the ground. */
const GRID = 5;
/** How fast others are drawn to where they are: a share of the way per second. */
const FOLLOW = 8;
/** Metres at which something is drawn where it is, at once. */
const LEAP = 10;

export interface Point {
  readonly x: number;
  readonly z: number;
}

/** All that is in view. */
export interface InView {
  readonly avatars: readonly TypedEntity<World["Avatar"]>[];
  readonly bushes: readonly TypedEntity<World["Bush"]>[];
}

export class Scene {
  private readonly context: CanvasRenderingContext2D;
  private readonly drawn = new Map<EntityId, Point>();
  private middle: Point = { x: 0, z: 0 };

  constructor(private readonly canvas: HTMLCanvasElement) {
    const context = canvas.getContext("2d");
    if (context === null) {
      throw new Error("this browser cannot draw on a canvas");
    }
    this.context = context;
  }

  /** The point of the garden at a point of the canvas. */
  worldAt(x: number, y: number): Point {
    const { clientWidth, clientHeight } = this.canvas;
    const scale = this.scale();
    return { x: this.middle.x + (x - clientWidth / 2) / scale, z: this.middle.z - (y - clientHeight / 2) / scale };
  }

  /** Draws all that is in view; `at` is where the player has walked, which is ahead of what the realm knows. */
  draw(seconds: number, { avatars, bushes }: InView, own: EntityId | undefined, at: Point | undefined): void {
    const { canvas, context } = this;
    const ratio = devicePixelRatio;
    canvas.width = canvas.clientWidth * ratio;
    canvas.height = canvas.clientHeight * ratio;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.middle = at ?? this.middle;
    this.ground();
    const ids = new Set([...avatars, ...bushes].map(({ id }) => id));
    for (const id of this.drawn.keys()) {
      if (!ids.has(id)) {
        this.drawn.delete(id);
      }
    }
    for (const bush of bushes) {
      if (bush.place !== undefined) {
        this.bush(this.follow(bush.id, bush.place.position, seconds), bush.get("ripe"));
      }
    }
    for (const avatar of avatars) {
      if (avatar.place !== undefined) {
        const isOwn = avatar.id === own;
        const point = isOwn && at !== undefined ? at : this.follow(avatar.id, avatar.place.position, seconds);
        this.avatar(point, avatar.get("name") ?? "", isOwn);
      }
    }
  }

  /** Where to draw something that is at a place now: on the way there, because places arrive in steps. */
  private follow(entity: EntityId, to: Point, seconds: number): Point {
    const from = this.drawn.get(entity) ?? to;
    const share = Math.hypot(to.x - from.x, to.z - from.z) > LEAP ? 1 : 1 - Math.exp(-FOLLOW * seconds);
    const point = { x: from.x + (to.x - from.x) * share, z: from.z + (to.z - from.z) * share };
    this.drawn.set(entity, point);
    return point;
  }

  private ground(): void {
    const { context, canvas } = this;
    const { clientWidth: width, clientHeight: height } = canvas;
    context.fillStyle = colour("--field");
    context.fillRect(0, 0, width, height);
    context.strokeStyle = colour("--line");
    context.beginPath();
    const step = GRID * this.scale();
    const start = this.onCanvas({ x: 0, z: 0 });
    for (let x = ((start.x % step) + step) % step; x < width; x += step) {
      context.moveTo(x, 0);
      context.lineTo(x, height);
    }
    for (let y = ((start.y % step) + step) % step; y < height; y += step) {
      context.moveTo(0, y);
      context.lineTo(width, y);
    }
    context.stroke();
  }

  private bush(point: Point, ripe: number | undefined): void {
    this.circle(point, 0.9, colour("--leaf"));
    if (ripe !== undefined && ripe !== 0) {
      this.circle(point, 0.3, colour("--berry"));
    }
  }

  private avatar(point: Point, name: string, isOwn: boolean): void {
    this.circle(point, 0.5, colour(isOwn ? "--own" : "--other"));
    const { x, y } = this.onCanvas(point);
    this.context.fillStyle = colour("--ink");
    this.context.font = "13px system-ui, sans-serif";
    this.context.textAlign = "center";
    this.context.fillText(name, x, y - 0.8 * this.scale());
  }

  private circle(point: Point, radius: number, fill: string): void {
    const { x, y } = this.onCanvas(point);
    this.context.fillStyle = fill;
    this.context.beginPath();
    this.context.arc(x, y, radius * this.scale(), 0, 2 * Math.PI);
    this.context.fill();
  }

  private onCanvas({ x, z }: Point): { readonly x: number; readonly y: number } {
    const { clientWidth, clientHeight } = this.canvas;
    const scale = this.scale();
    return { x: clientWidth / 2 + (x - this.middle.x) * scale, y: clientHeight / 2 - (z - this.middle.z) * scale };
  }

  /** Pixels per metre. */
  private scale(): number {
    return Math.min(this.canvas.clientWidth, this.canvas.clientHeight) / (2 * VIEW);
  }
}

function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name);
}
