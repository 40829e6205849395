/** Refusals of the log-in are shown in words. `ANNALS_PAGE` names the folder of the compiled page. */
import assert from "node:assert/strict";
import { test } from "node:test";

const { refusal } = await import(`${process.env.ANNALS_PAGE}/play/src/refusals.js`);
const { LOGIN_REFUSALS } = await import(`${process.env.ANNALS_PAGE}/client-ts/src/frames.js`);

test("every refusal is shown in words of its own", () => {
  const words = LOGIN_REFUSALS.map(refusal);
  assert.equal(new Set(words).size, LOGIN_REFUSALS.length);
  for (const [at, text] of words.entries()) {
    assert.match(text, /^[A-Z].*\.$/, LOGIN_REFUSALS[at]);
  }
  assert.match(refusal("NameTaken"), /taken/);
});
