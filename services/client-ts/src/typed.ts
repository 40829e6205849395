import type { Client, Entity } from "./client.js";
import type { Event } from "./events.js";
import type { CallDescription, EntityId, Part, Place, Step, Stream, TypeDescription, Value } from "./world.js";

/** What the compiler knows of an entity type. `annals defs generate` writes it. */
export interface TypeShape {
  /** The properties that clients see. */
  readonly view: object;
  /** Client methods. */
  readonly methods: object;
  /** What clients can call of the base part. */
  readonly baseCalls: object;
  /** What clients can call of the cell part. */
  readonly cellCalls: object;
}

/** An entity in view, of a known type. Its values are those that were shown last: copy what is to be kept. */
export interface TypedEntity<T extends TypeShape> {
  readonly id: EntityId;
  readonly place: Place | undefined;
  /** The value of a property; `undefined` if its part is not in view. */
  get<K extends keyof T["view"]>(property: K): T["view"][K] | undefined;
  /**
   * Calls of the base part. A one-way method returns the call's number, as `Client.call` does, and a two-way one a
   * promise of the return values, as `Client.ask` does. Both throw a `CallError` if no call was made.
   */
  readonly base: T["baseCalls"];
  /** The same of the cell part. */
  readonly cell: T["cellCalls"];
}

/** In a path of {@link EntityType.on}: every element of an array. */
export const EVERY = "*";

/** The paths to parts of a value that can change by themselves. */
export type PathInto<V> = V extends readonly unknown[]
  ? number extends V["length"]
    ? readonly [typeof EVERY] | readonly [typeof EVERY, ...PathInto<V[number]>]
    : never
  : V extends Uint8Array | bigint | string | number | null
    ? never
    : { [F in keyof V & string]: readonly [F] | readonly [F, ...PathInto<V[F]>] }[keyof V & string];

/** The value at the end of a path. */
export type PartAt<V, P extends readonly unknown[]> = P extends readonly [infer First, ...infer Rest]
  ? V extends readonly (infer E)[]
    ? PartAt<E, Rest>
    : First extends keyof V
      ? PartAt<V[First], Rest>
      : never
  : V;

/** A change of a value. */
export interface Change<V> {
  /** The value now. */
  readonly value: V;
  /** The steps from the property to the value: indices and names of fields. */
  readonly path: readonly Step[];
  /** The former value; `undefined` if only a part of it has changed. */
  readonly old: V | undefined;
  /** If only elements of this array were replaced: the new ones, from `at` to before `end`, and the former ones. */
  readonly slice: Slice<V> | undefined;
}

/** Replaced elements of an array. */
export type Slice<V> = V extends readonly (infer E)[]
  ? { readonly at: number; readonly end: number; readonly old: readonly E[] }
  : undefined;

type Arguments<M> = M extends (...args: infer A) => unknown ? A : never;

/** What has changed: where, and how. */
interface Changed {
  readonly path: readonly Step[];
  readonly old: Value | undefined;
  readonly slice: { readonly at: number; readonly end: number; readonly old: readonly Value[] } | undefined;
}

interface ChangeCallback {
  readonly path: readonly string[];
  readonly call: (entity: never, change: Change<never>) => void;
}

/** An entity type, for its entities and for what a game does when they change. */
export class EntityType<T extends TypeShape> {
  private readonly changes = new Map<number, ChangeCallback[]>();
  private readonly methods = new Map<number, (entity: never, ...args: never[]) => void>();

  constructor(private readonly type: TypeDescription) {}

  get id(): number {
    return this.type.id;
  }

  /** An entity in view; `undefined` if it is not, or of another type. */
  entity(client: Client, id: EntityId): TypedEntity<T> | undefined {
    const entity = client.entity(id);
    return entity?.type.id === this.type.id ? this.typed(client, entity) : undefined;
  }

  /** The entities in view. */
  entities(client: Client): TypedEntity<T>[] {
    const all = client.entities().filter(({ type }) => type.id === this.type.id);
    return all.map((entity) => this.typed(client, entity));
  }

  /**
   * Calls `changed` when a property changes, or with a path, such as `["inventory", EVERY, "count"]`, when the part
   * that it leads to does. A change goes to the callback with the longest path to what changed, or to a value around
   * it. A later callback of the same path replaces an earlier one. Throws a `TypeError` if there is no such part.
   */
  on<K extends keyof T["view"] & string>(
    property: K,
    changed: (entity: TypedEntity<T>, change: Change<T["view"][K]>) => void,
  ): void;
  on<K extends keyof T["view"] & string, const P extends PathInto<T["view"][K]>>(
    path: readonly [K, ...P],
    changed: (entity: TypedEntity<T>, change: Change<PartAt<T["view"][K], P>>) => void,
  ): void;
  on(where: string | readonly string[], changed: ChangeCallback["call"]): void {
    const [name, ...path] = typeof where === "string" ? [where] : where;
    const property = this.type.properties.findIndex((described) => described.name === name);
    const stream = this.type.properties[property]?.stream;
    if (stream === undefined || !leadsSomewhere(stream, path)) {
      throw new TypeError(`${this.type.name} has no part ${[name, ...path].join(".")} that changes`);
    }
    const others = (this.changes.get(property) ?? []).filter((other) => other.path.join() !== path.join());
    const callbacks = [...others, { path, call: changed }];
    this.changes.set(property, callbacks.sort((a, b) => b.path.length - a.path.length));
  }

  /** Calls `called` when a client method is called. Throws a `TypeError` if there is no such method. */
  onCall<M extends keyof T["methods"] & string>(
    method: M,
    called: (entity: TypedEntity<T>, ...args: Arguments<T["methods"][M]>) => void,
  ): void {
    const index = this.type.methods.findIndex(({ name }) => name === method);
    if (index < 0) {
      throw new TypeError(`${this.type.name} has no client method ${method}`);
    }
    this.methods.set(index, called as unknown as (entity: never, ...args: never[]) => void);
  }

  /** Calls the callbacks of an event about an entity of this type. */
  dispatch(client: Client, entity: Entity, event: Event): void {
    if (event.kind === "refreshed") {
      for (const [property, old] of event.replaced) {
        this.changed(client, entity, property, { path: [], old, slice: undefined });
      }
      return;
    }
    if (event.kind !== "shown") {
      return;
    }
    const { shown } = event;
    switch (shown.kind) {
      case "set":
        return this.changed(client, entity, shown.property, { path: [], old: shown.old, slice: undefined });
      case "nested":
        return this.changed(client, entity, shown.property, { path: shown.path, old: shown.old, slice: undefined });
      case "slice":
        return this.changed(client, entity, shown.property, { path: shown.path, old: undefined, slice: shown });
      case "method":
        this.methods.get(shown.method)?.(this.typed(client, entity) as never, ...(shown.args as never[]));
        return;
      case "reply":
        // The promise of the call has it.
        return;
    }
  }

  private changed(client: Client, entity: Entity, property: number, changed: Changed): void {
    const callbacks = this.changes.get(property) ?? [];
    const found = callbacks.find(({ path }) => path.every((step, i) => matches(step, changed.path[i])));
    const described = this.type.properties[property];
    const whole = described && entity.property(described.name);
    if (found === undefined || whole === undefined) {
      return;
    }
    const path = changed.path.slice(0, found.path.length);
    const value = valueAt(whole, path);
    if (value === undefined) {
      // It was removed later in the same frame: that change follows.
      return;
    }
    const isExact = path.length === changed.path.length;
    const { at, end, old } = (isExact ? changed.slice : undefined) ?? {};
    found.call(this.typed(client, entity) as never, {
      value: value as never,
      path,
      old: (isExact ? changed.old : undefined) as never,
      slice: (at === undefined ? undefined : { at, end, old }) as never,
    });
  }

  private typed(client: Client, entity: Entity): TypedEntity<T> {
    const calls = (part: Part, list: readonly CallDescription[]) => {
      const call = ({ name, returns }: CallDescription) => (...args: Value[]) =>
        returns === undefined ? client.call(part, entity.id, name, args) : client.ask(part, entity.id, name, args);
      return Object.fromEntries(list.map((described) => [described.name, call(described)]));
    };
    const { type } = this;
    return {
      id: entity.id,
      get place() {
        return entity.place;
      },
      get: (property) => entity.property(property as string) as never,
      get base() {
        return calls("base", type.baseCalls) as T["baseCalls"];
      },
      get cell() {
        return calls("cell", type.cellCalls) as T["cellCalls"];
      },
    };
  }
}

/**
 * The types of a world: `new Types<World>(WORLD)`, with both from the generated file. Pass every event of a client to
 * {@link Types.dispatch}.
 */
export class Types<W extends { readonly [N in keyof W]: TypeShape }> {
  private readonly types: ReadonlyMap<string, EntityType<TypeShape>>;

  constructor(world: readonly TypeDescription[]) {
    this.types = new Map(world.map((type) => [type.name, new EntityType(type)]));
  }

  /** The type with this name in the definitions. Throws a `TypeError` if there is none. */
  of<N extends keyof W & string>(name: N): EntityType<W[N]> {
    const type = this.types.get(name);
    if (type === undefined) {
      throw new TypeError(`the world has no type ${name} that clients see`);
    }
    return type as unknown as EntityType<W[N]>;
  }

  /** Calls the callbacks of an event. None is called for an entity that has left the view since. */
  dispatch(client: Client, event: Event): void {
    const entity = "entity" in event ? client.entity(event.entity) : undefined;
    if (entity !== undefined) {
      this.types.get(entity.type.name)?.dispatch(client, entity, event);
    }
  }
}

/** Whether a step of a callback's path is taken by a change. */
function matches(wanted: string, taken: Step | undefined): boolean {
  return wanted === EVERY ? typeof taken === "number" : wanted === taken;
}

/** Whether a path leads to a part that can change by itself. */
function leadsSomewhere(stream: Stream, [first, ...rest]: readonly string[]): boolean {
  if (first === undefined) {
    return true;
  }
  if (typeof stream === "string") {
    return false;
  }
  if (stream.kind === "FIXED_DICT") {
    const field = stream.fields.find(([name]) => name === first);
    return field !== undefined && leadsSomewhere(field[1], rest);
  }
  return stream.kind === "ARRAY" && first === EVERY && leadsSomewhere(stream.of, rest);
}

function valueAt(value: Value, path: readonly Step[]): Value | undefined {
  return path.reduce<Value | undefined>((at, step) => (at as { [key: Step]: Value } | null | undefined)?.[step], value);
}
