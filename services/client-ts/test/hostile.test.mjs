import assert from "node:assert/strict";
import { test } from "node:test";
import { cases, generator, module } from "./support.js";
import {
  BaseView, LOCATED, OWN, TICKET, TRADER, WELCOME, bought, failed, gone, refused, replyEvent, took,
} from "./two_way.js";

const { readLoginAnswer, readHelloAnswer, readMoves, readToClient } = await module("frames");
const { ClientCore } = await module("session");
const { Malformed, Reader, Writer } = await module("bytes");
const { CallError } = await module("exposed");
const { Mismatch, readValue, writeValue } = await module("values");

const FILES = { login_answer: readLoginAnswer, hello_answer: readHelloAnswer, to_client: readToClient, to_client_datagram: readMoves };

test("changed and shortened frames are read or refused", () => {
  const next = generator(2);
  for (const [file, read] of Object.entries(FILES)) {
    const vectors = cases(file).map(({ bytes }) => bytes);
    for (let round = 0; round < 10_000; round++) {
      const bytes = vectors[next(vectors.length)].slice();
      for (let i = next(4); i > 0; i--) {
        bytes[next(bytes.length)] = next(256);
      }
      try {
        read(bytes.subarray(0, next(3) === 0 ? next(bytes.length) : bytes.length));
      } catch (error) {
        assert.ok(error instanceof Malformed, `${file}: ${error}`);
      }
    }
  }
});

test("announced counts allocate nothing that is not there", () => {
  const empty = { kind: "FIXED_DICT", allowNone: false, fields: [] };
  const array = (of) => ({ kind: "ARRAY", of, size: null });
  for (const stream of [array("UINT8"), array(empty), array(array(empty)), "BLOB", "UNICODE_STRING"]) {
    const many = Uint8Array.of(0xff, 0xff, 0xff, 0xff);
    assert.throws(() => readValue(new Reader(many), stream), Malformed);
  }
  const items = Uint8Array.of(5, 1, 1, 1, 1, 0xff, 0xff, 0xff, 0xff, 0x0f);
  assert.throws(() => readToClient(items), Malformed);
});

test("arrays with holes are refused", () => {
  const array = { kind: "ARRAY", of: "UINT8", size: null };
  assert.throws(() => writeValue(new Writer(), array, [1, , 3]), Mismatch);
  assert.throws(() => writeValue(new Writer(), "VECTOR3", [1, , 3]), Mismatch);
});

test("a session survives any frames, and is closed or goes on", () => {
  const type = {
    id: 4,
    name: "Thing",
    properties: [{ name: "hp", declared: "hp", part: "cell", stream: "UINT8", initial: "05" }],
    methods: [{ name: "onSay", declared: "onSay", args: ["UNICODE_STRING"] }],
    baseCalls: [],
    cellCalls: [{ name: "say", declared: "say", args: ["UNICODE_STRING"], ownOnly: true }],
  };
  const files = ["login_answer", "hello_answer", "to_client", "to_client_datagram", "predicted"];
  const vectors = files.flatMap((file) => cases(file).slice(0, 20));
  const next = generator(3);
  for (let round = 0; round < 300; round++) {
    const core = new ClientCore({ schema: "bb".repeat(32), types: [type] }, { name: "a", password: "b" }, () => 0.5);
    let now = 0;
    let attempt = 0;
    core.start(now);
    for (let step = 0; step < 200 && !core.hasEnded; step++) {
      for (const output of core.takeOutputs()) {
        attempt = output.kind === "login" || output.kind === "connect" ? output.attempt : attempt;
      }
      core.takeEvents();
      now += next(400);
      const bytes = vectors[next(vectors.length)].bytes.slice();
      if (next(4) === 0) {
        bytes[next(bytes.length)] = next(256);
      }
      const inputs = [
        () => core.loginAnswered(now, attempt, bytes),
        () => core.connected(now, attempt),
        () => core.frame(now, attempt, bytes),
        () => core.datagram(now, attempt, bytes),
        () => core.tick(now),
        () => next(10) === 0 && core.disconnected(now, attempt, "Lost"),
      ];
      inputs[next(inputs.length)]();
    }
    assert.ok(core.hasEnded || core.deadline() < Infinity || core.isPlaying, `round ${round} waits for nothing`);
  }
});

/** What a server may send of calls to the client's own entity: answers in its view, and frames about the calls. */
function aboutCalls(core, next) {
  const outcomes = [bought(5n, "thanks"), failed(4), failed(7, "TooPoor", "because")];
  const replies = [1, 2, 3].map(() => replyEvent(1 + next(20), outcomes[next(outcomes.length)]));
  const answers = () => new BaseView(Number(core.views.base.number)).frame(...replies);
  const refusal = () => refused(1 + next(20), next(4));
  const frames = [answers, answers, answers, answers, refusal, refusal, () => took(next(20)), () => gone()];
  return frames[next(frames.length)]();
}

test("whatever the server sends of calls, each settles once", () => {
  const next = generator(7);
  const ended = {};
  for (let round = 0; round < 100; round++) {
    const core = new ClientCore({ schema: "bb".repeat(32), types: [TRADER] }, { name: "a", password: "b" }, () => 0.5);
    const waiting = new Set();
    let now = 0;
    let attempt = 0;
    core.start(now);
    for (let step = 0; step < 300; step++) {
      for (const output of core.takeOutputs()) {
        if (output.kind === "login") {
          core.loginAnswered(now, output.attempt, core.controls === undefined ? TICKET : LOCATED);
        } else if (output.kind === "connect") {
          attempt = output.attempt;
          core.connected(now, attempt);
          core.frame(now, attempt, WELCOME);
        }
      }
      const bytes = aboutCalls(core, next);
      if (next(4) === 0) {
        bytes[next(bytes.length)] = next(256);
      }
      now += next(400);
      const inputs = [
        () => core.frame(now, attempt, bytes),
        () => core.isPlaying && ask(core, now, waiting, 1 + next(20_000)),
        () => core.tick(now),
        () => next(20) === 0 && core.disconnected(now, attempt, "Lost"),
      ];
      inputs[next(inputs.length)]();
      core.takeEvents();
      settle(core, waiting, ended);
    }
    core.leave();
    settle(core, waiting, ended);
    assert.equal(waiting.size, 0, `round ${round}: calls wait for ever`);
  }
  for (const kind of ["values", "custom", "noReply", "refused", "lost", "ended"]) {
    assert.ok(ended[kind] > 20, `${kind}: ${JSON.stringify(ended)}`);
  }
});

/** Makes a call that is answered, if one can be made. */
function ask(core, now, waiting, within) {
  try {
    waiting.add(core.ask(now, "base", OWN, "buy", [7], within));
  } catch (error) {
    assert.ok(error instanceof CallError, String(error));
  }
}

/** Takes what has settled: each call does so once. */
function settle(core, waiting, ended) {
  for (const { id, outcome } of core.takeSettled()) {
    assert.ok(waiting.delete(id), `${id} settles again`);
    const kind = outcome.failure?.kind ?? "values";
    ended[kind] = (ended[kind] ?? 0) + 1;
  }
}
