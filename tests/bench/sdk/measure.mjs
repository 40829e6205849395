// Decodes a recorded session with the TypeScript client, beside JSON.parse of the same content, and prints the figures as
// JSON. Arguments: the folder of the built client, that of the built world, the recording, the bundle.
//
// The recording has a line for each input of the session: kind, milliseconds since its beginning, hexadecimal digits.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";

const [client, world, recording, bundle] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(path).href);
const { ClientCore } = await load(join(client, "session.js"));
const { CLIENT_SCHEMA, WORLD } = await load(join(world, "world.js"));

/** Rounds of each measurement, in turns; the first ones warm up the compiler. */
const ROUNDS = 12;
const WARM_UP = 4;
/** Milliseconds of one measurement: short sessions are repeated. */
const LEAST = 40;

const inputs = readFileSync(recording, "utf8").trim().split("\n").map((line) => {
  const [kind, at, digits] = line.split(" ");
  return { kind, at: Number(at), bytes: new Uint8Array(Buffer.from(digits, "hex")) };
});

/** A client that was given the ticket and the connection. */
function connect() {
  const core = new ClientCore({ schema: CLIENT_SCHEMA, types: WORLD }, { name: "a", password: "b" }, () => 0.5);
  const output = (kind) => core.takeOutputs().find((one) => one.kind === kind);
  const answer = inputs.findLast(({ kind }) => kind === "answer");
  core.start(answer.at);
  core.loginAnswered(answer.at, output("login").attempt, answer.bytes);
  const { attempt } = output("connect");
  core.connected(answer.at, attempt);
  core.takeOutputs();
  return { core, attempt };
}

const received = inputs.filter(({ kind }) => kind !== "answer");

/** Repeats the session with a new client; `each` is called after each input. */
function replay({ core, attempt }, each) {
  for (const { kind, at, bytes } of received) {
    // As often as the recorded client did what was due.
    for (let due = core.deadline(); due <= at && Number.isFinite(due); due = core.deadline()) {
      core.tick(due);
    }
    if (kind === "frame") {
      core.frame(at, attempt, bytes);
    } else {
      core.datagram(at, attempt, bytes);
    }
    core.takeOutputs();
    each(core.takeEvents(), core);
  }
  return core;
}

function plain(_key, value) {
  if (typeof value === "bigint") {
    return value.toString();
  }
  if (value instanceof Map) {
    return [...value];
  }
  return ArrayBuffer.isView(value) ? [...value] : value;
}

/** For each input, the JSON of what the client had from it: events, and the places of entities that have moved. */
function content() {
  const texts = [];
  const places = new Map();
  let movements = 0;
  const core = replay(connect(), (events, { views }) => {
    const moved = [];
    for (const [entity, { place }] of views.cell.entities) {
      if (places.get(entity) !== place) {
        places.set(entity, place);
        moved.push({ entity, place });
      }
    }
    movements += events.length === 0 ? moved.length : 0;
    texts.push(JSON.stringify({ events, moved }, plain));
  });
  // Movements arrive in datagrams, which raise no events.
  if (!core.isPlaying || core.views.cell.entities.size === 0 || movements === 0) {
    throw new Error("the recorded session cannot be repeated");
  }
  return texts;
}

const texts = content();
let sink = 0;

// What is made ready before each repetition is not measured.
const nothing = () => undefined;
const works = {
  decode: (client) => replay(client, (events) => (sink += events.length)),
  parse: () => texts.forEach((text) => (sink += JSON.parse(text).moved.length)),
  // The least that any decoder does: to look at each byte.
  walk: () => {
    for (const { bytes } of received) {
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      for (let at = 0; at < view.byteLength; at += 1) {
        sink += view.getUint8(at);
      }
    }
  },
};

/** Microseconds for each input. */
function time(prepare, work) {
  let repeated = 0;
  let spent = 0;
  do {
    const ready = prepare();
    const began = performance.now();
    work(ready);
    spent += performance.now() - began;
    repeated += 1;
  } while (spent < LEAST);
  return (spent * 1_000) / repeated / received.length;
}

const times = { decode: [], parse: [], walk: [] };
for (let round = 0; round < ROUNDS + WARM_UP; round += 1) {
  for (const [name, work] of Object.entries(works)) {
    const took = time(name === "decode" ? connect : nothing, work);
    if (round >= WARM_UP) {
      times[name].push(took);
    }
  }
}
const median = (values) => values.sort((one, other) => one - other)[values.length >> 1];
const code = readFileSync(bundle);
const count = (kind) => received.filter((input) => input.kind === kind).length;
console.log(
  JSON.stringify({
    frames: count("frame"),
    datagrams: count("datagram"),
    bytes: received.reduce((sum, { bytes }) => sum + bytes.length, 0),
    json_bytes: texts.reduce((sum, text) => sum + text.length, 0),
    decode_us: median(times.decode),
    parse_us: median(times.parse),
    walk_us: median(times.walk),
    bundle_bytes: code.length,
    bundle_gzip_bytes: gzipSync(code, { level: 9 }).length,
    node: process.version,
    // So that no work is optimised away.
    sink: sink > 0,
  }),
);
