// What several tests use. `ANNALS_CLIENT` names the folder of the built library, `ANNALS_VECTORS` that of the protocol's
// test vectors.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const built = process.env["ANNALS_CLIENT"] ?? join(import.meta.dirname, "../dist");
const vectors = process.env["ANNALS_VECTORS"] ?? join(import.meta.dirname, "../../../schema/wire/test_data/client");

/** Imports a module of the library. */
export function module(name) {
  return import(pathToFileURL(join(built, `${name}.js`)).href);
}

/** The cases of a file of vectors: name, text and bytes. */
export function cases(file) {
  const lines = readFileSync(join(vectors, `${file}.txt`), "utf8").split("\n");
  const found = [];
  let name;
  let texts = [];
  for (const line of lines) {
    if (line !== "" && !line.startsWith(" ")) {
      [name, texts] = [line, []];
    } else if (/^ {2}([0-9a-f]{2})*$/.test(line) && name !== undefined) {
      found.push({ name, text: texts.join("\n"), bytes: Uint8Array.from(Buffer.from(line.trim(), "hex")) });
    } else if (line !== "") {
      texts.push(line.trim());
    }
  }
  return found;
}

/** The bytes of the case with this name. */
export function bytesOf(file, name) {
  const found = cases(file).find((vector) => vector.name === name);
  if (found === undefined) {
    throw new Error(`${file} has no case ${name}`);
  }
  return found.bytes;
}

export function hex(bytes) {
  return Buffer.from(bytes).toString("hex");
}

/** Numbers from 0 to below `below`, the same for the same seed. */
export function generator(seed) {
  let state = BigInt(seed);
  return (below) => {
    state = BigInt.asUintN(64, state * 6364136223846793005n + 1442695040888963407n);
    return Number((state >> 33n) % BigInt(below));
  };
}
