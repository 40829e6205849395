// The count of what must be 0: each kind of loss is noticed, and nothing else.
import assert from "node:assert/strict";
import { test } from "node:test";

const { Tally } = await import(`${process.env.ANNALS_PAGE}/play/src/tally.js`);

test("ascending numbers of each part are no loss", () => {
  const tally = new Tally();
  for (const [part, entity, number] of [["cell", 1n, 3n], ["base", 1n, 1n], ["cell", 2n, 1n], ["cell", 1n, 9n]]) {
    tally.see(part, entity, number);
  }
  assert.deepEqual([tally.shown, tally.lost], [4, 0]);
});

test("a number that is given again is a loss", () => {
  const tally = new Tally();
  [3n, 4n, 4n, 2n, 5n].forEach((number) => tally.see("cell", 1n, number));
  assert.deepEqual([tally.shown, tally.lost], [5, 2]);
});

test("pings are answered once, in order", () => {
  const tally = new Tally();
  const [first, second] = [tally.nextPing(0), tally.nextPing(500)];
  tally.pong(first, 40);
  tally.pong(second, 530);
  assert.deepEqual([tally.answered, tally.unanswered, tally.wrong, tally.roundTrip], [2, 0, 0, 30]);
});

test("pings that were skipped, and answers that were repeated, are counted", () => {
  const tally = new Tally();
  const [first, , third] = [tally.nextPing(0), tally.nextPing(1), tally.nextPing(2)];
  tally.pong(first, 3);
  tally.pong(third, 4);
  assert.deepEqual([tally.wrong, tally.unanswered], [1, 0], "the second was lost");
  tally.pong(third, 5);
  assert.equal(tally.wrong, 2, "the third was answered twice");
});

test("pings pause while too many are unanswered", () => {
  const tally = new Tally();
  let sent = 0;
  while (tally.nextPing(sent) !== undefined) {
    sent += 1;
    assert(sent < 1_000);
  }
  assert.equal(tally.unanswered, sent);
});

test("the longest interruption is kept", () => {
  const tally = new Tally();
  for (const [lost, resumed] of [[0, 700], [1_000, 1_200]]) {
    tally.interrupted(lost);
    tally.resumed(resumed);
  }
  tally.resumed(9_000);
  assert.deepEqual([tally.interruptions, tally.longestInterruption], [2, 700]);
});
