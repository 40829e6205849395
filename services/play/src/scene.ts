/** The picture: the ground and everything in view, from above; north is up. */
import type { Entity, EntityId } from "../../client-ts/src/index.js";
import type { Game } from "./game.js";
import { type Drawn, Track } from "./smooth.js";
import type { Walker } from "./walker.js";
import { TypeId } from "./world.js";

/** Metres of the world that the shorter side of the picture shows. */
const SHOWN_METRES = 44;
/** Metres between two lines of the ground, and between two strong ones. */
const GRID = 5;
const STRONG_GRID = 25;
/** Milliseconds that words and other texts over a head are shown. */
const SAID_FOR = 6_000;
const OVER_FOR = 1_400;
/** Maximum texts at a time, and characters of words over a head. */
const MAX_TEXTS = 60;
const MAX_SAID = 60;
/** Maximum entities that are listed in words. */
const MAX_IN_WORDS = 20;
const DIRECTIONS = ["north", "north-east", "east", "south-east", "south", "south-west", "west", "north-west"];
/** Pixels around an entity in which it is hit by a pointer. */
const HIT = 24;
/** Pixels from the edge of the picture to the marks of what is beyond it. */
const EDGE = 10;
/** Hues that distinguish avatars. */
const HUES = [210, 150, 275, 35, 185, 320, 95, 245];

interface FloatingText {
  readonly entity: EntityId;
  readonly text: string;
  readonly isSaid: boolean;
  readonly since: number;
}

/** Colours of the stylesheet. */
interface Colours {
  readonly ground: string;
  readonly line: string;
  readonly strongLine: string;
  readonly ink: string;
  readonly quiet: string;
  readonly raised: string;
  readonly accent: string;
  readonly bad: string;
  readonly good: string;
  readonly gold: string;
  readonly lightness: string;
}

function coloursOf(element: Element): Colours {
  const style = getComputedStyle(element);
  const of = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    ground: of("field"), line: of("field-line"), strongLine: of("field-strong-line"), ink: of("ink"), quiet: of("quiet"), raised: of("raised"),
    accent: of("accent"), bad: of("bad"), good: of("good"), gold: of("gold"), lightness: of("figure-lightness"),
  };
}

export class Scene {
  selected: EntityId | undefined;
  private readonly tracks = new Map<EntityId, Track>();
  private texts: FloatingText[] = [];
  private readonly context: CanvasRenderingContext2D;
  private colours: Colours;
  /** CSS pixels. */
  private width = 0;
  private height = 0;
  private scale = 1;
  private centre: Drawn = { x: 0, z: 0, yaw: 0 };

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly game: Game,
    private readonly walker: Walker,
  ) {
    const context = canvas.getContext("2d");
    if (context === null) {
      throw new Error("this browser draws no canvas");
    }
    this.context = context;
    this.colours = coloursOf(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => (this.colours = coloursOf(canvas)));
  }

  say(entity: EntityId, text: string): void {
    const short = text.length > MAX_SAID ? `${text.slice(0, MAX_SAID)}…` : text;
    this.texts = this.texts.filter((other) => !(other.isSaid && other.entity === entity));
    this.add({ entity, text: short, isSaid: true, since: performance.now() });
  }

  over(entity: EntityId, text: string): void {
    this.add({ entity, text, isSaid: false, since: performance.now() });
  }

  /** Where an entity is drawn. */
  drawnAt(entity: EntityId): Drawn | undefined {
    return entity === this.game.own?.id ? this.walker.place : this.tracks.get(entity)?.at(performance.now());
  }

  /** The place in the world under a pixel of the canvas. */
  worldAt(x: number, y: number): { readonly x: number; readonly z: number } {
    return {
      x: this.centre.x + (x - this.width / 2) / this.scale,
      z: this.centre.z - (y - this.height / 2) / this.scale,
    };
  }

  /** The entity under a pixel of the canvas, apart from the player's own. */
  entityAt(x: number, y: number): EntityId | undefined {
    const own = this.game.own?.id;
    const near = [...this.tracks.keys()].flatMap((entity) => {
      const drawn = entity === own ? undefined : this.drawnAt(entity);
      if (drawn === undefined) {
        return [];
      }
      const [atX, atY] = this.pixel(drawn);
      const distance = Math.hypot(atX - x, atY - y);
      return distance <= HIT ? [{ entity, distance }] : [];
    });
    return near.sort((one, other) => one.distance - other.distance)[0]?.entity;
  }

  /** The nearest entity of a type to the player. */
  nearest(type: TypeId): EntityId | undefined {
    const { place } = this.walker;
    const own = this.game.own?.id;
    if (place === undefined) {
      return undefined;
    }
    const found = this.game.entities().flatMap(({ id, type: { id: typeId } }) => {
      const drawn = typeId === type && id !== own ? this.drawnAt(id) : undefined;
      return drawn === undefined ? [] : [{ id, distance: Math.hypot(drawn.x - place.x, drawn.z - place.z) }];
    });
    return found.sort((one, other) => one.distance - other.distance)[0]?.id;
  }

  /** What is in view in words, the nearest first: for those who do not see the picture. */
  inWords(): string[] {
    const { place } = this.walker;
    const own = this.game.own?.id;
    if (place === undefined) {
      return [];
    }
    const found = this.game.entities().flatMap((entity) => {
      const at = entity.id === own ? undefined : this.drawnAt(entity.id);
      if (at === undefined) {
        return [];
      }
      const [east, north] = [at.x - place.x, at.z - place.z];
      const distance = Math.hypot(east, north);
      const direction = DIRECTIONS[Math.round(Math.atan2(east, north) / (Math.PI / 4)) & 7];
      const health = this.game.healthOf(entity);
      const state = health === undefined ? "" : `, ${health[0]} health`;
      return [{ distance, text: `${this.game.nameOf(entity)}${state}, ${Math.round(distance)} m ${direction}` }];
    });
    found.sort((one, other) => one.distance - other.distance);
    return found.slice(0, MAX_IN_WORDS).map(({ text }) => text);
  }

  draw(now: number): void {
    const entities = this.game.entities().filter(({ place }) => place !== undefined);
    this.note(now, entities);
    this.fit();
    this.centre = this.walker.place ?? this.centre;
    const { context, colours } = this;
    context.fillStyle = colours.ground;
    context.fillRect(0, 0, this.width, this.height);
    this.drawGrid();
    const own = this.game.own?.id;
    const placed = entities.flatMap((entity) => {
      const at = this.drawnAt(entity.id);
      return at === undefined ? [] : [{ entity, at }];
    });
    const drawn = placed.filter(({ at }) => this.isVisible(at));
    placed.filter(({ at }) => !this.isVisible(at)).forEach(({ entity, at }) => this.drawBeyond(entity, at));
    // What is further south covers what is behind it; the player is on top.
    drawn.sort((one, other) => Number(one.entity.id === own) - Number(other.entity.id === own) || other.at.z - one.at.z);
    drawn.forEach(({ entity, at }) => this.drawEntity(entity, at, entity.id === own));
    drawn.forEach(({ entity, at }) => this.drawLabel(entity, at, entity.id === own));
    this.drawTexts(now);
  }

  private add(text: FloatingText): void {
    this.texts.push(text);
    this.texts.splice(0, this.texts.length - MAX_TEXTS);
  }

  private note(now: number, entities: readonly Entity[]): void {
    const present = new Set(entities.map(({ id }) => id));
    [...this.tracks.keys()].filter((id) => !present.has(id)).forEach((id) => this.tracks.delete(id));
    for (const { id, place } of entities) {
      if (place !== undefined) {
        const track = this.tracks.get(id) ?? new Track();
        this.tracks.set(id, track);
        track.note(now, place);
      }
    }
    if (this.selected !== undefined && !present.has(this.selected)) {
      this.selected = undefined;
    }
  }

  /** Gives the canvas the pixels that its place on the page has. */
  private fit(): void {
    const { clientWidth, clientHeight } = this.canvas;
    const ratio = Math.min(devicePixelRatio || 1, 3);
    const [width, height] = [Math.round(clientWidth * ratio), Math.round(clientHeight * ratio)];
    if (this.canvas.width !== width || this.canvas.height !== height) {
      [this.canvas.width, this.canvas.height] = [width, height];
    }
    [this.width, this.height] = [clientWidth, clientHeight];
    this.scale = Math.max(9, Math.min(clientWidth, clientHeight) / SHOWN_METRES);
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  private pixel({ x, z }: { readonly x: number; readonly z: number }): readonly [x: number, y: number] {
    return [
      this.width / 2 + (x - this.centre.x) * this.scale,
      this.height / 2 - (z - this.centre.z) * this.scale,
    ];
  }

  private isVisible(at: Drawn): boolean {
    const [x, y] = this.pixel(at);
    return x > -HIT && y > -HIT && x < this.width + HIT && y < this.height + HIT;
  }

  private drawGrid(): void {
    const { context, colours } = this;
    const [north, south] = [this.worldAt(0, 0), this.worldAt(this.width, this.height)];
    context.lineWidth = 1;
    for (const [every, colour] of [[GRID, colours.line], [STRONG_GRID, colours.strongLine]] as const) {
      context.strokeStyle = colour;
      context.beginPath();
      for (let x = Math.ceil(north.x / every) * every; x <= south.x; x += every) {
        const [at] = this.pixel({ x, z: 0 });
        context.moveTo(Math.round(at) + 0.5, 0);
        context.lineTo(Math.round(at) + 0.5, this.height);
      }
      for (let z = Math.ceil(south.z / every) * every; z <= north.z; z += every) {
        const [, at] = this.pixel({ x: 0, z });
        context.moveTo(0, Math.round(at) + 0.5);
        context.lineTo(this.width, Math.round(at) + 0.5);
      }
      context.stroke();
    }
  }

  /** A mark at the edge of the picture, in the direction of an avatar or a monster beyond it. */
  private drawBeyond(entity: Entity, at: Drawn): void {
    const isAvatar = entity.type.id === TypeId.Avatar;
    if (!isAvatar && entity.type.id !== TypeId.Monster) {
      return;
    }
    const { context, colours } = this;
    const [x, y] = this.pixel(at);
    const [toX, toY] = [x - this.width / 2, y - this.height / 2];
    const share = Math.min((this.width / 2 - EDGE) / Math.abs(toX), (this.height / 2 - EDGE) / Math.abs(toY));
    context.save();
    context.translate(this.width / 2 + toX * share, this.height / 2 + toY * share);
    context.rotate(Math.atan2(toX, -toY));
    context.fillStyle = isAvatar ? colours.quiet : colours.bad;
    context.globalAlpha = 0.7;
    context.beginPath();
    context.moveTo(0, -6);
    context.lineTo(5, 4);
    context.lineTo(-5, 4);
    context.fill();
    context.restore();
  }

  private drawEntity(entity: Entity, at: Drawn, isOwn: boolean): void {
    const { context, colours } = this;
    const [x, y] = this.pixel(at);
    const size = Math.max(8, this.scale * 0.6);
    if (entity.id === this.selected) {
      context.strokeStyle = colours.accent;
      context.lineWidth = 2.5;
      context.beginPath();
      context.arc(x, y, size + 6, 0, 2 * Math.PI);
      context.stroke();
    }
    context.save();
    context.translate(x, y);
    switch (entity.type.id) {
      case TypeId.Avatar:
        context.rotate(at.yaw);
        this.drawAvatar(entity, size, isOwn);
        break;
      case TypeId.Monster:
        context.rotate(at.yaw);
        this.drawMonster(entity, size);
        break;
      default:
        context.fillStyle = colours.gold;
        context.fillRect(-size, -size * 0.7, size * 2, size * 1.4);
        context.fillStyle = colours.ground;
        context.fillRect(-size, -size * 0.15, size * 2, size * 0.3);
    }
    context.restore();
  }

  /** A round figure with a nose that points where it looks. */
  private drawAvatar(entity: Entity, size: number, isOwn: boolean): void {
    const { context, colours } = this;
    const hue = HUES[Number(entity.id % BigInt(HUES.length))] ?? 210;
    context.fillStyle = isOwn ? colours.accent : `hsl(${hue} 45% ${colours.lightness})`;
    context.beginPath();
    context.moveTo(0, -size * 1.8);
    context.lineTo(size * 0.85, -size * 0.5);
    context.lineTo(-size * 0.85, -size * 0.5);
    context.fill();
    context.beginPath();
    context.arc(0, 0, size, 0, 2 * Math.PI);
    context.fill();
    context.strokeStyle = isOwn ? colours.ink : colours.ground;
    context.lineWidth = isOwn ? 2.5 : 1.5;
    context.stroke();
  }

  private drawMonster(entity: Entity, size: number): void {
    const { context, colours } = this;
    const isDead = (this.game.monster(entity.id)?.get("hp") ?? 1) <= 0;
    context.fillStyle = isDead ? colours.quiet : colours.bad;
    context.beginPath();
    context.moveTo(0, -size * 1.4);
    context.lineTo(size, 0);
    context.lineTo(0, size * 1.1);
    context.lineTo(-size, 0);
    context.closePath();
    context.fill();
    context.strokeStyle = colours.ground;
    context.lineWidth = 1.5;
    context.stroke();
  }

  private drawLabel(entity: Entity, at: Drawn, isOwn: boolean): void {
    const [x, y] = this.pixel(at);
    const size = Math.max(8, this.scale * 0.6);
    const isAvatar = entity.type.id === TypeId.Avatar;
    if (isAvatar) {
      this.write(this.game.nameOf(entity), x, y + size * 1.5 + 12, isOwn ? "600 13px" : "12px", isOwn ? this.colours.ink : this.colours.quiet);
    }
    const [hp, max] = this.game.healthOf(entity) ?? [1, 1];
    if (hp < max) {
      this.drawBar(x, y - size * 1.5 - 8, hp / max);
    }
  }

  private drawBar(x: number, y: number, share: number): void {
    const { context, colours } = this;
    const width = 34;
    context.fillStyle = colours.ground;
    context.fillRect(x - width / 2 - 1, y - 1, width + 2, 7);
    context.fillStyle = colours.quiet;
    context.fillRect(x - width / 2, y, width, 5);
    context.fillStyle = share > 0.4 ? colours.good : colours.bad;
    context.fillRect(x - width / 2, y, width * Math.max(0, Math.min(1, share)), 5);
  }

  private drawTexts(now: number): void {
    this.texts = this.texts.filter(({ isSaid, since }) => now - since < (isSaid ? SAID_FOR : OVER_FOR));
    const size = Math.max(8, this.scale * 0.6);
    for (const { entity, text, isSaid, since } of this.texts) {
      const at = this.drawnAt(entity);
      if (at === undefined || !this.isVisible(at)) {
        continue;
      }
      const [x, y] = this.pixel(at);
      if (isSaid) {
        this.drawWords(text, x, y - size * 1.5 - 24);
      } else {
        const risen = ((now - since) / OVER_FOR) * 24;
        this.write(text, x, y - size * 1.5 - 14 - risen, "600 14px", this.colours.bad);
      }
    }
  }

  private drawWords(text: string, x: number, y: number): void {
    const { context, colours } = this;
    context.font = "13px system-ui, sans-serif";
    const width = context.measureText(text).width + 16;
    // Words of somebody at the edge stay readable.
    const centre = Math.max(width / 2 + 4, Math.min(this.width - width / 2 - 4, x));
    context.fillStyle = colours.raised;
    context.strokeStyle = colours.line;
    context.lineWidth = 1;
    context.beginPath();
    context.roundRect(centre - width / 2, y - 13, width, 24, 8);
    context.fill();
    context.stroke();
    context.fillStyle = colours.ink;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillText(text, centre, y);
  }

  /** Text with an edge in the colour of the ground, so that it is readable over anything. */
  private write(text: string, x: number, y: number, font: string, colour: string): void {
    const { context, colours } = this;
    context.font = `${font} system-ui, sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.strokeStyle = colours.ground;
    context.lineWidth = 3;
    context.lineJoin = "round";
    context.strokeText(text, x, y);
    context.fillStyle = colour;
    context.fillText(text, x, y);
  }
}
