// Plays the steps of a scenario with this library, and reports what it observes: a runner of tests/realm/scenarios, whose
// README describes steps and observations. It knows Node and browsers by `access` alone.
import { CallError, CallFailed, Client, EVERY, Types } from "annals-client";
import { CLIENT_SCHEMA, WORLD } from "./world.js";

/** Milliseconds between two looks at what no event reports. */
const POLL_MS = 20;
/** Milliseconds between two strides of a walk, and the length of one in metres. */
const STRIDE_MS = 50;
const STRIDE = 2;
const WIDE = ["INT64", "UINT64"];

/** A value as JSON: 64-bit integers as decimal text, bytes as an object. Throws if the library gave another type. */
function toJson(stream, value) {
  const kind = stream.kind ?? stream;
  if (value === null) {
    return null;
  }
  if (kind === "ARRAY" || kind === "TUPLE") {
    return value.map((element) => toJson(stream.of, element));
  }
  if (kind === "FIXED_DICT") {
    return Object.fromEntries(stream.fields.map(([name, field]) => [name, toJson(field, value[name])]));
  }
  if (WIDE.includes(kind) !== (typeof value === "bigint")) {
    throw new TypeError(`${kind} is a ${typeof value}`);
  }
  if (typeof value === "bigint") {
    return String(value);
  }
  return value instanceof Uint8Array ? { bytes: hex(value) } : value;
}

/** An argument of a call. What does not fit the type is passed on as it is: the library has to refuse it. */
function fromJson(stream, json) {
  const kind = stream?.kind ?? stream;
  if (WIDE.includes(kind) && /^-?\d+$/.test(json)) {
    return BigInt(json);
  }
  if (Array.isArray(json)) {
    return json.map((element) => fromJson(stream?.of, element));
  }
  if (typeof json === "object" && typeof json?.bytes === "string") {
    return Uint8Array.from(json.bytes.match(/../g) ?? [], (digits) => Number.parseInt(digits, 16));
  }
  if (kind === "FIXED_DICT" && typeof json === "object" && json !== null) {
    const streams = Object.fromEntries(stream.fields);
    return Object.fromEntries(Object.entries(json).map(([name, field]) => [name, fromJson(streams[name], field)]));
  }
  return json;
}

const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** The type of the part of a value to which a path leads. */
const streamAt = (stream, path) =>
  path.reduce((at, step) => (typeof step === "number" ? at.of : Object.fromEntries(at.fields)[step]), stream);

/** The paths to all parts that can change by themselves. */
function pathsInto(stream) {
  const below = (step, inner) => pathsInto(inner).map((path) => [step, ...path]);
  switch (stream.kind) {
    case "FIXED_DICT":
      return [[], ...stream.fields.flatMap(([name, field]) => below(name, field))];
    case "ARRAY":
      return [[], ...below(EVERY, stream.of)];
    default:
      return [[]];
  }
}

/** Callbacks for everything that can happen to an entity. */
function observed(emit) {
  const types = new Types(WORLD);
  for (const { name: type, properties, methods } of WORLD) {
    const callbacks = types.of(type);
    for (const { name: property, stream } of properties) {
      const changed = ({ id }, { value, path, old, slice }) => {
        const at = streamAt(stream, path);
        const json = (part) => toJson(at, part);
        emit({
          event: "changed", entity: String(id), type, member: property, path,
          ...(slice === undefined
            ? { value: json(value), ...(old === undefined ? {} : { old: json(old) }) }
            : { at: slice.at, value: json(value.slice(slice.at, slice.end)), old: json(slice.old) }),
        });
      };
      pathsInto(stream).forEach((path) => callbacks.on([property, ...path], changed));
    }
    for (const { name: method, args: streams } of methods) {
      callbacks.onCall(method, ({ id }, ...args) => {
        const values = args.map((value, i) => toJson(streams[i], value));
        emit({ event: "called", entity: String(id), type, member: method, args: values });
      });
    }
  }
  return types;
}

const coordinates = ({ position: { x, y, z } }) => [x, y, z];
const typeName = (id) => WORLD.find((type) => type.id === id)?.name ?? null;
const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** A player that does one step after the other. */
export class Runner {
  client;
  types;
  /** The types of the entities that entered a view: one that has left has none any more. */
  entered = new Map();
  /** The type of the entity that the player controls. */
  controlled;
  losses = 0;

  /**
   * `access` has the `url` of the login service, the option `webTransport`, and the `network`, which can be `cut` and
   * `restored`; `emit` is called with each observation.
   */
  constructor(access, emit) {
    Object.assign(this, { access, emit });
  }

  /** Does a step; returns its answer. Throws if it cannot be done. */
  async take({ does, ...step }) {
    if (!Object.hasOwn(STEPS, does)) {
      throw new Error(`unknown step ${does}`);
    }
    return (await STEPS[does](this, step)) ?? null;
  }

  /** Waits until something holds that no event reports. The test that asks ends this process if it takes too long. */
  async until(holds) {
    while (!holds()) {
      await sleep(POLL_MS);
    }
  }

  /** An entity in view: the own one, if none is named. */
  seen(entity) {
    const { client } = this;
    const id = entity === undefined ? client.controls : BigInt(entity);
    return id === undefined ? undefined : client.entity(id);
  }

  observe(event) {
    const { client, emit } = this;
    const { kind } = event;
    const entity = String(event.entity);
    switch (kind) {
      case "connected":
      case "controls":
        this.controlled = event.typeId;
        return emit({ event: kind, entity, type: typeName(event.typeId) });
      case "queued":
        return emit({ event: kind, position: event.position, length: event.length });
      case "lost":
        this.losses += 1;
        return emit({ event: kind, reason: event.reason });
      case "resumed":
      case "rateWarned":
        return emit({ event: kind });
      case "entered":
        this.entered.set(event.entity, typeName(event.typeId));
        return emit({ event: kind, part: event.part, entity, type: typeName(event.typeId) });
      case "left":
        return emit({ event: kind, part: event.part, entity, type: this.entered.get(event.entity) ?? null });
      case "placed":
        return emit({ event: kind, entity, place: coordinates(event.place) });
      case "drives":
        return emit({ event: kind, entity, drives: event.drives });
      case "spaceEntered":
        return emit({ event: kind, space: event.space });
      case "spaceDataChanged":
        return emit({ event: kind, key: event.key, value: this.spaceData(event.key) });
      case "callRefused":
        return emit({ event: kind, part: event.part, entity, number: String(event.number), reason: event.reason });
      case "callsLost":
        return emit({ event: kind, part: event.part, entity, numbers: event.numbers.map(String) });
      case "downloaded":
        return emit({ event: kind, description: event.description, content: { bytes: hex(event.content) } });
      case "downloadEnded":
        return emit({ event: kind });
      case "ended": {
        const { kind: how, reason } = event.reason;
        return emit({ event: kind, how, ...(reason === undefined ? {} : { reason }) });
      }
      default:
        this.types.dispatch(client, event);
    }
  }

  spaceData(key) {
    const value = this.client.spaceData?.get(key);
    return value === undefined ? null : { bytes: hex(value) };
  }
}

/** A call as a step names it: the type and the exposed method, if they are known, and the arguments for the client. */
function called({ client, controlled }, { part, entity, method, args }) {
  const id = BigInt(entity);
  // An account can be called before it is in view.
  const type = client.entity(id)?.type ?? WORLD.find(({ id }) => id === controlled);
  const exposed = type?.[`${part}Calls`].find(({ name }) => name === method);
  const values = args.map((argument, i) => fromJson(exposed?.args[i], argument));
  return { type, exposed, arguments: [part, id, method, values] };
}

/** Makes a call; returns "refused" if the library refuses it. */
function refusable(make) {
  try {
    make();
  } catch (error) {
    if (error instanceof CallError) {
      return "refused";
    }
    throw error;
  }
}

const STEPS = {
  "log in"(runner, { name, password, register = false }) {
    const { url, webTransport } = runner.access;
    runner.types = observed(runner.emit);
    runner.client = new Client({
      url, webTransport, name, password, register,
      world: { schema: CLIENT_SCHEMA, types: WORLD },
      onEvent: (event) => runner.observe(event),
    });
  },

  call(runner, step) {
    return refusable(() => runner.client.call(...called(runner, step).arguments));
  },

  ask(runner, step) {
    const { type, exposed, arguments: args } = called(runner, step);
    const { part, entity, method: member } = step;
    return refusable(() => {
      const observed = { event: "answered", part, entity, type: type?.name ?? null, member };
      runner.client.ask(...args).then(
        (values) => {
          const list = (exposed?.returns ?? []).map(([name, stream]) => toJson(stream, values[name]));
          runner.emit({ ...observed, values: list });
        },
        (error) => {
          if (!(error instanceof CallFailed)) {
            throw error;
          }
          runner.emit({ ...observed, failure: error.message });
        },
      );
    });
  },

  settle(runner) {
    return runner.until(() => runner.client.unconfirmedCalls === 0);
  },

  async walk(runner, { to: [x, y, z], yaw, entity }) {
    await runner.until(() => runner.client.isPlaying && runner.seen(entity)?.place !== undefined);
    const from = runner.seen(entity).place.position;
    const strides = Math.max(1, Math.ceil(Math.hypot(x - from.x, z - from.z) / STRIDE));
    for (let stride = 1; stride <= strides; stride++) {
      const share = stride / strides;
      const position = { x: from.x + (x - from.x) * share, y, z: from.z + (z - from.z) * share };
      const place = { position, direction: { yaw, pitch: 0, roll: 0 } };
      const { client } = runner;
      if (!(entity === undefined ? client.moveTo(place) : client.moveEntity(BigInt(entity), place))) {
        throw new Error("there is no connection to move on, or another driver");
      }
      await sleep(STRIDE_MS);
    }
  },

  async look(runner, { entity, at, within }) {
    const isThere = ({ place }) => coordinates(place).every((metres, axis) => Math.abs(metres - at[axis]) <= within);
    const seen = () => runner.client.entity(BigInt(entity));
    await runner.until(() => seen()?.place !== undefined && isThere(seen()));
  },

  read({ client }, { entity, property }) {
    const seen = client.entity(BigInt(entity));
    const stream = seen?.type.properties.find(({ name }) => name === property)?.stream;
    const value = seen?.property(property);
    return value === undefined ? null : toJson(stream, value);
  },

  "read space data"(runner, { key }) {
    return runner.spaceData(key);
  },

  "read time of day"({ client }) {
    return client.timeOfDay ?? null;
  },

  async "lose the connection"(runner) {
    const before = runner.losses;
    runner.access.network.cut();
    await runner.until(() => runner.losses > before);
  },

  "restore the network"({ access }) {
    access.network.restore();
  },

  leave({ client }) {
    client.leave();
  },

  "name the steps"() {
    return Object.keys(STEPS).sort();
  },
};

/** An address at which nothing listens. */
const NOWHERE = "127.0.0.1:1";
/** The code of a close with the reason "Lost". */
const LOST = 1;

/** The platform's network, which can be cut: its connections are lost then, and new ones reach nothing. */
export class Network {
  open = new Set();
  isCut = false;

  constructor() {
    const network = this;
    const { WebSocket: Socket, WebTransport: Session } = globalThis;
    globalThis.WebSocket = class extends Socket {
      constructor(url, protocol) {
        super(network.isCut ? `wss://${NOWHERE}` : url, protocol);
        const lose = () => this.close(4000 + LOST);
        network.open.add(lose);
        this.addEventListener("close", () => network.open.delete(lose));
      }
    };
    if (Session !== undefined) {
      globalThis.WebTransport = class extends Session {
        constructor(url, options) {
          super(network.isCut ? `https://${NOWHERE}` : url, options);
          const lose = () => this.close({ closeCode: LOST });
          network.open.add(lose);
          const end = () => network.open.delete(lose);
          this.closed.then(end, end);
        }
      };
    }
  }

  cut() {
    this.isCut = true;
    this.open.forEach((lose) => lose());
  }

  restore() {
    this.isCut = false;
  }
}

/** Takes steps, a line of JSON each, in their order, and answers each after what was observed before. */
export function answering(runner, answer) {
  let before = Promise.resolve();
  return (line) => {
    before = before.then(async () => {
      try {
        answer({ answer: await runner.take(JSON.parse(line)) });
      } catch (error) {
        answer({ error: String(error.stack) });
      }
    });
  };
}
