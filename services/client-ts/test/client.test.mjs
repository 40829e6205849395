import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { module } from "./support.js";
import { BaseView, OWN, TICKET, TRADER, WELCOME, bought, failed, replyEvent } from "./two_way.js";

const { Client } = await module("client");
const { CallFailed } = await module("asks");
const { CallError } = await module("exposed");
const { Types } = await module("typed");

/** A promise that does not settle fails its test. */
const LIMIT = { timeout: 5_000 };
const original = globalThis.WebSocket;

class FakeSocket {
  static OPEN = 1;
  static opened = [];

  constructor() {
    this.readyState = 0;
    FakeSocket.opened.push(this);
  }

  connect() {
    this.readyState = FakeSocket.OPEN;
    this.onopen();
  }

  receive(body) {
    this.onmessage({ data: Uint8Array.of(0, ...body).buffer });
  }

  send() {}

  close() {}
}

let started;

afterEach(() => {
  started?.leave();
  globalThis.WebSocket = original;
});

/** A client that plays, and what has happened, in order. `onEvent` is called with the kind of each event. */
function playing(onEvent = () => {}) {
  FakeSocket.opened = [];
  globalThis.WebSocket = FakeSocket;
  const happened = [];
  started = new Client({
    url: "ws://realm:1",
    name: "a",
    password: "b",
    world: { schema: "bb".repeat(32), types: [TRADER] },
    resolve: () => "ws://realm:2",
    onEvent: ({ kind }) => {
      happened.push(kind);
      onEvent(kind);
    },
  });
  FakeSocket.opened[0].connect();
  FakeSocket.opened[0].receive(TICKET);
  FakeSocket.opened[1].connect();
  FakeSocket.opened[1].receive(WELCOME);
  assert.deepEqual(happened.splice(0), ["connected"]);
  const client = started;
  const view = new BaseView();
  const show = (...events) => FakeSocket.opened[1].receive(view.frame(...events));
  const buy = (options) => client.ask("base", OWN, "buy", [7], options);
  return { client, happened, show, buy };
}

/** The failure of a promise that is rejected with one. */
async function failureOf(promise) {
  const error = await promise.then(() => assert.fail("it has values"), (rejected) => rejected);
  assert.ok(error instanceof CallFailed, String(error));
  return error.failure;
}

test("a promise has the return values of its call, or is rejected with the failure", LIMIT, async () => {
  const { client, show, buy } = playing();
  const [first, second] = [buy(), buy()];
  show(replyEvent(2, failed(7, "TooPoor", "12 are missing")), replyEvent(1, bought(12n, "thanks")));
  const values = await first;
  assert.deepEqual([values.gold, Object.keys(values)], [12n, ["gold", "__proto__"]]);
  assert.deepEqual(await failureOf(second), { kind: "custom", name: "TooPoor", text: "12 are missing" });
  await assert.rejects(second, { name: "CallFailed", method: "buy", message: "buy: TooPoor: 12 are missing" });
  assert.throws(() => client.ask("base", OWN, "ping", [1]), CallError);
});

test("a promise is rejected when the time for the answer is over", LIMIT, async () => {
  const { client, show, buy } = playing();
  const promise = buy({ timeoutMs: 20 });
  assert.deepEqual(await failureOf(promise), { kind: "noReply" });
  show(replyEvent(1, bought(12n, "thanks")));
  assert.deepEqual(await failureOf(promise), { kind: "noReply" });
});

test("promises are rejected after the last event", LIMIT, async () => {
  const later = (kind) => kind === "shown" && client.leave();
  const { client, happened, buy, show } = playing(later);
  // Its event ends the client: the call after it fails, and it does not.
  const [answered, waiting] = [buy(), buy()];
  const note = (name) => happened.push(name);
  const both = [answered.then(() => note("answered")), waiting.catch(({ failure }) => note(`failed: ${failure.kind}`))];
  show(replyEvent(1, bought(12n, "thanks")));
  assert.deepEqual(happened, ["entered", "shown", "ended"]);
  await Promise.all(both);
  assert.deepEqual(happened.slice(3), ["answered", "failed: ended"]);
  assert.throws(() => buy(), CallError);
});

test("an entity of a known type is asked by the method's name", LIMIT, async () => {
  const { client, show } = playing();
  show();
  const trader = new Types([TRADER]).of("Trader").entity(client, OWN);
  const bought7 = trader.base.buy(7);
  assert.equal(trader.base.ping(1), 2n, "a one-way call");
  show(replyEvent(1, bought(12n, "thanks")));
  assert.equal((await bought7).gold, 12n);
});
