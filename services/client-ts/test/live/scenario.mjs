// One player of the sample world, in Node or in a browser: logs in, sees others, talks, walks, and goes on when its base
// is killed. Says what it has done; the base is killed after `ready`.
import { CallError, Client } from "annals-client";
import { CLIENT_SCHEMA, WORLD } from "./world.js";

const PINGS = 20;
const TIMEOUT_MS = 60_000;

/** Values as text, 64-bit integers included. */
const text = (value) => JSON.stringify(value, (_, part) => (typeof part === "bigint" ? `${part}n` : part));

function check(holds, what) {
  if (!holds) {
    throw new Error(what);
  }
}

function same(found, wanted) {
  check(text(found) === text(wanted), `${text(found)} is not ${text(wanted)}`);
}

/** Plays at this log-in service; `say` is called with what carries the connection after `ready` and `done`. */
export async function play(url, say, webTransport = false) {
  const events = [];
  const pongs = [];
  let waiting = () => {};
  const client = new Client({
    url,
    webTransport,
    name: "typescript",
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
      check(end === undefined, `ended while waiting: ${what}: ${text(end)}`);
      check(Date.now() - began < TIMEOUT_MS, `not within ${TIMEOUT_MS} ms: ${what}`);
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
    same(pongs.splice(0), numbers);
  }

  const numbers = (from) => Array.from({ length: PINGS }, (_, i) => from + i);

  await until("an avatar in the world", () => own()?.type.name === "Avatar" && own().place !== undefined);
  await until("its properties", () => own().property("hp") > 0 && own().property("name") !== "");
  same(own().property("maxHp"), 100);
  same(typeof own().property("trader"), "bigint");
  await until("others in view", () => client.entities().some(({ id, place }) => id !== own().id && place !== undefined));
  const before = new Map(client.entities().map(({ id, place }) => [id, place]));
  await until("a movement of another", () =>
    client.entities().some(({ id, place }) => id !== own().id && before.get(id) !== undefined && place !== before.get(id)),
  );
  check(client.core.views.cell.reader?.ack() !== undefined, "movements are predicted");
  await until("the space", () => happened("spaceEntered") === 1);
  await ping(numbers(1));

  const heard = () =>
    events.some(
      ({ kind, entity, shown }) =>
        kind === "shown" && entity === own().id && shown.kind === "method" && shown.args[0] === "hello from node",
    );
  client.call("cell", own().id, "say", ["hello from node"]);
  await until("its own words", heard);
  for (const [method, args] of [["say", [7]], ["fly", []]]) {
    let thrown;
    try {
      client.call("cell", own().id, method, args);
    } catch (error) {
      thrown = error;
    }
    check(thrown instanceof CallError, `${method} with ${text(args)} is refused`);
  }

  const start = own().place.position;
  for (let step = 1; step <= 20; step++) {
    const position = { ...start, x: start.x + step * 0.2 };
    check(client.moveTo({ position, direction: { yaw: 1.5, pitch: 0, roll: 0 } }), "it moves");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  check(Math.abs(own().place.position.x - start.x - 4) < 0.01, "nobody has put it back");
  say(`ready over ${client.transport}`);

  await until("the loss of the base", () => happened("lost") > 0);
  client.call("base", client.controls, "ping", [1000]);
  await until("the session to go on", () => happened("resumed") > 0 && client.isPlaying);
  await until("the answer to what was asked meanwhile", () => pongs.length > 0 && client.unconfirmedCalls === 0);
  same(pongs.splice(0), [1000]);
  await ping(numbers(2000));
  same(happened("connected"), 1);
  const { transport } = client;
  client.leave();
  same(events.at(-1), { kind: "ended", reason: { kind: "left" } });
  say(`done over ${transport}`);
}
