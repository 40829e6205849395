import { Malformed } from "./bytes.js";
import { Shower } from "./changes.js";
import type { Event } from "./events.js";
import type { Moves, Stamp, Stamps, ViewFrame, ViewItem } from "./frames.js";
import { type MovementAck, PredictedReader, moved } from "./predicted.js";
import { SpaceData } from "./space_data.js";
import type { EntityId, Part, Place, Position, TypeDescription, Value } from "./world.js";

/** Milliseconds within which a view that was started must get its first frame; doubled each time it does not. */
const FIRST_FRAME_WITHIN = 2_000;
const LONGEST_WAIT = 8_000;
/** Milliseconds without a frame after which the cell's view is restarted. */
const QUIET_AFTER = 20_000;
/** Milliseconds of game time per tick of a cell. */
const TICK_MS = 100;
/** Maximum history numbers in one message of stamps. */
const MAX_STAMPS = 3_000;
/** Maximum entities that have left and are kept. */
const MAX_KEPT = 64;

/** A view lacks something, or contradicts its state: it must restart. */
export class ViewGap extends Error {}

/** An entity as one view shows it. */
export class EntityView {
  /** The history number up to which it was shown. */
  upto = 0n;
  /** For each level of detail finer than its own, the history number of the properties of that level. */
  finer: bigint[] = [];
  /** The values by client number. */
  readonly values: Value[];
  placedAt: bigint;

  constructor(
    readonly type: TypeDescription,
    private readonly shower: Shower,
    public place: Place | undefined,
    tick: bigint,
  ) {
    this.values = shower.initial();
    this.placedAt = tick;
  }

  stamp(entity: EntityId): Stamp {
    return { entity, upto: this.upto, finer: [...this.finer] };
  }

  /** Applies all properties, and returns the former values of those that differ, unless it is new. */
  refresh(upto: bigint, level: number, bytes: Uint8Array): Map<number, Value> {
    const sent = this.shower.readProperties(bytes);
    const isNew = this.upto === 0n;
    const values = this.shower.initial();
    sent.forEach((value, property) => (values[property] = value));
    const replaced = new Map<number, Value>();
    values.forEach((value, property) => {
      const old = this.values[property] as Value;
      if (!isNew && !equal(old, value)) {
        replaced.set(property, old);
      }
      this.values[property] = value;
    });
    this.upto = upto;
    this.finer = Array.from({ length: level }, () => 0n);
    return replaced;
  }

  /** Changes the level of detail, and returns the former values of the properties that were sent for it. */
  changeLevel(level: number, bytes: Uint8Array): Map<number, Value> {
    const replaced = new Map<number, Value>();
    for (const [property, value] of this.shower.readProperties(bytes)) {
      const old = this.values[property] as Value;
      if (!equal(old, value)) {
        replaced.set(property, old);
      }
      this.values[property] = value;
    }
    this.finer.length = Math.min(this.finer.length, level);
    while (this.finer.length < level) {
      this.finer.push(this.upto);
    }
    return replaced;
  }

  update(upto: bigint, bytes: Uint8Array, onEach: Parameters<Shower["apply"]>[3]): void {
    this.shower.apply(bytes, [this.upto, upto], this.values, (number, shown) => {
      this.upto = number;
      onEach(number, shown);
    });
    this.upto = upto;
  }
}

function equal(one: Value, other: Value): boolean {
  if (one instanceof Uint8Array || Array.isArray(one)) {
    const list = other as Uint8Array | Value[];
    return one.length === list.length && Array.prototype.every.call(one, (value, i) => equal(value, list[i] as Value));
  }
  if (typeof one === "object" && one !== null && typeof other === "object" && other !== null) {
    return Object.entries(one).every(([field, value]) => equal(value, (other as { [f: string]: Value })[field] as Value));
  }
  return Object.is(one, other);
}

type Phase =
  | { readonly kind: "idle" }
  | { readonly kind: "begun"; readonly againAt: number; readonly wait: number }
  | { readonly kind: "following"; readonly next: bigint; readonly quietAt: number };

/** One of a client's two views: its entities in exactly the state in which they were shown. */
export class View {
  readonly entities = new Map<EntityId, EntityView>();
  space: { readonly space: number; readonly data: SpaceData } | undefined;
  /** Metres per unit of predicted movements; `undefined` if they are plain. It takes effect with the next start. */
  scale: number | undefined;
  private reader: PredictedReader | undefined;
  private number = 0n;
  private phase: Phase = { kind: "idle" };
  /** Entities that have left, in the order in which they left. */
  private readonly kept = new Map<EntityId, EntityView>();
  private ticked: { readonly tick: bigint; readonly at: number } | undefined;
  /** Whether the client moves an entity, as the server has sent. Of others it moves its own. */
  private readonly driveItems = new Map<EntityId, boolean>();

  constructor(
    readonly source: Part,
    private readonly showers: ReadonlyMap<number, Shower>,
    private readonly types: ReadonlyMap<number, TypeDescription>,
    private readonly emit: (event: Event) => void,
  ) {}

  /** Milliseconds of game time by the newest frame; `undefined` before the first. */
  gameTime(now: number): number | undefined {
    return this.ticked && Number(this.ticked.tick) * TICK_MS + (now - this.ticked.at);
  }

  /** Whether the client, which controls `own`, moves an entity. */
  drives(entity: EntityId, own: EntityId): boolean {
    return this.driveItems.get(entity) ?? entity === own;
  }

  /** Restarts the view with all known state. `own` is the entity that the client controls, `near` its position. */
  begin(now: number, own: EntityId | undefined, near: Position): Stamps {
    const wait = this.phase.kind === "begun" ? Math.min(this.phase.wait * 2, LONGEST_WAIT) : FIRST_FRAME_WITHIN;
    this.forgetBeyond(MAX_STAMPS, near);
    this.number += 1n;
    this.phase = { kind: "begun", againAt: now + wait, wait };
    this.reader = this.scale === undefined ? undefined : new PredictedReader(this.number, this.scale);
    const stamps = (of: ReadonlyMap<EntityId, EntityView>) => [...of].map(([entity, seen]) => seen.stamp(entity));
    const seen = stamps(this.entities).sort((one, other) => (one.entity < other.entity ? -1 : 1));
    const space = this.space && { space: this.space.space, versions: this.space.data.versions() };
    const unusual = [...this.driveItems].filter(([entity, drives]) => drives !== (entity === own));
    const unusualDrivers = unusual.map(([entity]) => entity).sort((one, other) => (one < other ? -1 : 1));
    return { source: this.source, view: this.number, seen, kept: stamps(this.kept), space, unusualDrivers };
  }

  /** The connection was lost. */
  pause(): void {
    this.phase = { kind: "idle" };
  }

  /** Removes every entity. */
  clear(): void {
    this.kept.clear();
    this.space = undefined;
    this.driveItems.clear();
    [...this.entities.keys()].forEach((entity) => this.leave(entity));
  }

  /** When the view must restart because no frame arrived. */
  deadline(): number {
    switch (this.phase.kind) {
      case "begun":
        return this.phase.againAt;
      case "following":
        return this.phase.quietAt;
      case "idle":
        return Infinity;
    }
  }

  /** Applies a frame; throws {@link ViewGap}, after the items before it were applied. */
  apply(now: number, frame: ViewFrame): void {
    if (frame.view !== this.number || this.phase.kind === "idle") {
      return;
    }
    const next = this.phase.kind === "begun" ? 1n : this.phase.next;
    if (frame.sequence !== next) {
      throw new ViewGap();
    }
    const quietAt = this.source === "cell" ? now + QUIET_AFTER : Infinity;
    this.phase = { kind: "following", next: next + 1n, quietAt };
    if (this.source === "cell") {
      this.ticked = { tick: frame.tick, at: now };
    }
    frame.items.forEach((item) => this.applyItem(item, frame.tick));
  }

  /** Applies movements. What the client of `own` moves itself is not moved by these. */
  applyMoves(moves: Moves, own: EntityId): void {
    if (moves.view !== this.number || this.phase.kind !== "following") {
      return;
    }
    moves.moves.forEach(({ entity, place }) => this.follow(entity, [own, moves.tick], () => place));
  }

  /** The same of predicted movements. Returns what to acknowledge, if they were read. Throws {@link Malformed}. */
  applyPredicted(bytes: Uint8Array, own: EntityId): { readonly view: bigint; readonly ack: MovementAck } | undefined {
    const { phase, reader, ticked } = this;
    const moves = phase.kind === "following" && ticked !== undefined ? reader?.read(bytes, ticked.tick) : undefined;
    moves?.motions.forEach((motion) => {
      this.follow(motion.entity, [own, moves.tick], (place) => moved(place, motion));
    });
    const ack = moves && reader?.ack();
    return ack && { view: this.number, ack };
  }

  /** Sets the place of an entity at a tick, unless a later one is known or the client moves the entity itself. */
  private follow(
    entity: EntityId,
    [own, tick]: readonly [EntityId, bigint],
    to: (place: Place | undefined) => Place,
  ): void {
    const seen = this.entities.get(entity);
    if (seen !== undefined && !this.drives(entity, own) && tick > seen.placedAt) {
      seen.place = to(seen.place);
      seen.placedAt = tick;
    }
  }

  private seen(entity: EntityId): EntityView {
    const seen = this.entities.get(entity);
    if (seen === undefined) {
      throw new ViewGap();
    }
    return seen;
  }

  private applyItem(item: ViewItem, tick: bigint): void {
    const { entity } = item;
    switch (item.kind) {
      case "enter": {
        const [type, shower] = [this.types.get(item.typeId), this.showers.get(item.typeId)];
        if (type === undefined || shower === undefined) {
          throw new ViewGap();
        }
        this.kept.delete(entity);
        return this.enter(entity, new EntityView(type, shower, item.place, tick));
      }
      case "leave": {
        const seen = this.leave(entity);
        return seen && this.keep(entity, seen);
      }
      case "return": {
        const seen = this.kept.get(entity);
        if (seen === undefined) {
          throw new ViewGap();
        }
        this.kept.delete(entity);
        [seen.place, seen.placedAt] = [item.place, tick];
        return this.enter(entity, seen);
      }
      case "placed": {
        const seen = this.seen(entity);
        [seen.place, seen.placedAt] = [item.place, tick];
        return this.emit({ kind: "placed", entity, place: item.place });
      }
      case "drives":
        this.seen(entity);
        this.driveItems.set(entity, item.drives);
        return this.emit({ kind: "drives", entity, drives: item.drives });
      case "space":
        this.seen(entity);
        return this.enterSpace(item.space);
      case "spaceData": {
        this.seen(entity);
        if (this.space === undefined) {
          throw new ViewGap();
        }
        this.space.data.take(item.entry);
        return;
      }
      case "refresh":
        return this.refresh(entity, (seen) => seen.refresh(item.upto, item.level, item.properties));
      case "level":
        return this.refresh(entity, (seen) => seen.changeLevel(item.level, item.properties));
      case "update":
        return this.update(item);
    }
  }

  private enterSpace(space: number): void {
    if (this.space?.space === space) {
      return;
    }
    const data = new SpaceData();
    data.onChange = (key) => this.emit({ kind: "spaceDataChanged", key });
    this.space = { space, data };
    this.emit({ kind: "spaceEntered", space });
  }

  private refresh(entity: EntityId, take: (seen: EntityView) => Map<number, Value>): void {
    const seen = this.seen(entity);
    const replaced = this.orGiveUp(entity, () => take(seen));
    this.emit({ kind: "refreshed", part: this.source, entity, replaced });
  }

  private update({ entity, from, upto, events }: ViewItem & { kind: "update" }): void {
    const seen = this.seen(entity);
    if (seen.upto !== from) {
      // Something before it is missing: the present state is correct and stays.
      throw new ViewGap();
    }
    this.orGiveUp(entity, () =>
      seen.update(upto, events, (number, shown) => {
        if (shown.kind === "reply" && shown.part !== this.source) {
          throw new Malformed("called part");
        }
        this.emit({ kind: "shown", part: this.source, entity, number, shown });
      }),
    );
  }

  /** What was sent of the entity may contradict its state: it is shown as a new one then. */
  private orGiveUp<T>(entity: EntityId, apply: () => T): T {
    try {
      return apply();
    } catch (error) {
      if (!(error instanceof Malformed)) {
        throw error;
      }
      this.leave(entity);
      throw new ViewGap();
    }
  }

  private enter(entity: EntityId, seen: EntityView): void {
    this.leave(entity);
    this.entities.set(entity, seen);
    this.emit({ kind: "entered", part: this.source, entity, typeId: seen.type.id });
  }

  private leave(entity: EntityId): EntityView | undefined {
    const seen = this.entities.get(entity);
    if (seen !== undefined) {
      this.entities.delete(entity);
      this.driveItems.delete(entity);
      this.emit({ kind: "left", part: this.source, entity });
    }
    return seen;
  }

  private keep(entity: EntityId, seen: EntityView): void {
    if (this.source === "base") {
      return;
    }
    this.kept.set(entity, seen);
    for (const oldest of this.kept.keys()) {
      if (this.kept.size <= MAX_KEPT) {
        break;
      }
      this.kept.delete(oldest);
    }
  }

  /** Drops kept entities and all but the nearest ones in view, if there are more than `limit` history numbers. */
  private forgetBeyond(limit: number, near: Position): void {
    const numbers = (of: Iterable<EntityView>) => [...of].reduce((sum, seen) => sum + 1 + seen.finer.length, 0);
    if (numbers(this.entities.values()) + numbers(this.kept.values()) <= limit) {
      return;
    }
    this.kept.clear();
    const distance = ({ place }: EntityView) => {
      const { x, z } = place?.position ?? { x: 0, z: 0 };
      return Math.max(Math.abs(x - near.x), Math.abs(z - near.z));
    };
    let sum = 0;
    const nearest = [...this.entities].sort(([, one], [, other]) => distance(one) - distance(other));
    for (const [entity, seen] of nearest) {
      sum += 1 + seen.finer.length;
      if (sum > limit) {
        this.leave(entity);
      }
    }
  }
}
