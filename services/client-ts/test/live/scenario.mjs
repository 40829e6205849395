// One player of the sample world: logs in, sees others, talks, walks, and goes on when its base is killed. Prints what
// it has done, a word per line; the base is killed after `ready`.
//
//   node scenario.mjs URL
import assert from "node:assert/strict";
import { Client } from "annals-client";
import { CLIENT_SCHEMA, WORLD } from "./world.js";

const PINGS = 20;
const TIMEOUT_MS = 60_000;
const [url] = process.argv.slice(2);

const events = [];
const pongs = [];
let waiting = () => {};
const client = new Client({
  url,
  name: "node",
  password: "the password",
  world: { schema: CLIENT_SCHEMA, types: WORLD },
  onEvent(event) {
    events.push(event);
    const shown = event.kind === "shown" && event.shown.kind === "method" ? event.shown : undefined;
    const type = shown && client.entity(event.entity)?.type;
    if (type?.methods[shown.method]?.name === "onPong") {
      pongs.push(shown.args[0]);
    }
    waiting();
  },
});

/** Waits until a condition holds; it is checked after each event, and from time to time. */
async function until(what, holds) {
  const began = Date.now();
  while (!holds()) {
    const end = events.find(({ kind }) => kind === "ended");
    assert.equal(end, undefined, `ended while waiting: ${what}: ${JSON.stringify(end)}`);
    assert.ok(Date.now() - began < TIMEOUT_MS, `not within ${TIMEOUT_MS} ms: ${what}`);
    await new Promise((resolve) => {
      waiting = resolve;
      setTimeout(resolve, 50);
    });
  }
}

const own = () => client.controls && client.entity(client.controls);
const happened = (kind) => events.filter((event) => event.kind === kind).length;

/** Calls that must take effect once each, and in order. */
async function ping(numbers) {
  numbers.forEach((number) => client.call("base", client.controls, "ping", [number]));
  await until("answers to all pings", () => pongs.length >= numbers.length && client.unconfirmedCalls === 0);
  assert.deepEqual(pongs.splice(0), numbers);
}

const numbers = (from) => Array.from({ length: PINGS }, (_, i) => from + i);

await until("an avatar in the world", () => own()?.type.name === "Avatar" && own().place !== undefined);
await until("its properties", () => own().property("hp") > 0 && own().property("name") !== "");
assert.equal(own().property("maxHp"), 100);
assert.ok(typeof own().property("trader") === "bigint");
await until("others in view", () => client.entities().some(({ id, place }) => id !== own().id && place !== undefined));
await until("a movement of another", () => {
  const places = client.entities().map(({ id, place }) => [id, place]);
  globalThis.before ??= new Map(places);
  return places.some(([id, place]) => id !== own().id && globalThis.before.has(id) && place !== globalThis.before.get(id));
});
await until("the space", () => happened("spaceEntered") === 1);
await ping(numbers(1));

const heard = () =>
  events.some(
    ({ kind, entity, shown }) =>
      kind === "shown" && entity === own().id && shown.kind === "method" && shown.args[0] === "hello from node",
  );
client.call("cell", own().id, "say", ["hello from node"]);
await until("its own words", heard);
assert.throws(() => client.call("cell", own().id, "say", [7]), { name: "CallError" });
assert.throws(() => client.call("cell", own().id, "fly", []), { name: "CallError" });

const start = own().place.position;
for (let step = 1; step <= 20; step++) {
  const position = { ...start, x: start.x + step * 0.2 };
  assert.ok(client.moveTo({ position, direction: { yaw: 1.5, pitch: 0, roll: 0 } }));
  await new Promise((resolve) => setTimeout(resolve, 100));
}
assert.ok(Math.abs(own().place.position.x - start.x - 4) < 0.01, "nobody has put it back");
console.log("ready");

await until("the loss of the base", () => happened("lost") > 0);
client.call("base", client.controls, "ping", [1000]);
await until("the session to go on", () => happened("resumed") > 0 && client.isPlaying);
await until("the answer to what was asked meanwhile", () => pongs.length > 0 && client.unconfirmedCalls === 0);
assert.deepEqual(pongs.splice(0), [1000]);
await ping(numbers(2000));
assert.equal(happened("connected"), 1);
client.leave();
assert.deepEqual(events.at(-1), { kind: "ended", reason: { kind: "left" } });
console.log("done");
