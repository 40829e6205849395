// A client without pictures: it logs in, prints what it sees, and leaves after a while.

import { Client, type Entity, type Event, type Shown, type Value } from "annals-client";

import { CLIENT_SCHEMA, WORLD } from "./world.js";

declare const process: { readonly argv: readonly string[]; exitCode: number };

const [, , url, name, password, seconds = "60"] = process.argv;

if (url === undefined || name === undefined || password === undefined || !(Number(seconds) > 0)) {
  console.error("Usage: npm start URL NAME PASSWORD [SECONDS], with a URL like wss://localhost:7700");
  process.exitCode = 2;
} else {
  const client = new Client({
    url,
    name,
    password,
    world: { schema: CLIENT_SCHEMA, types: WORLD },
    onEvent: (event) => print(client, event),
  });
  setTimeout(() => client.leave(), Number(seconds) * 1_000);
}

function print(client: Client, event: Event): void {
  switch (event.kind) {
    case "connected":
    case "controls":
      return console.log(`controls ${typeName(event.typeId)} ${event.entity}, over ${client.transport}`);
    case "queued":
      return console.log(`waits: number ${event.position} of ${event.length} in the queue of the full realm`);
    case "entered":
      return console.log(`sees ${typeName(event.typeId)} ${event.entity}`);
    case "left":
      return console.log(`sees ${event.entity} no more`);
    case "shown": {
      const seen = client.entity(event.entity);
      return seen && console.log(`${seen.type.name} ${seen.id}: ${described(seen, event.shown)}`);
    }
    case "lost":
      return console.log("the connection was lost; the session continues when there is another one");
    case "resumed":
      return console.log("the session continues");
    case "ended":
      console.log(`the session has ended: ${event.reason.kind}`);
      process.exitCode = event.reason.kind === "left" ? 0 : 1;
  }
}

function typeName(id: number): string {
  return WORLD.find((type) => type.id === id)?.name ?? "";
}

/** A change, a call of a client method, or an answer, in words. */
function described(seen: Entity, shown: Shown): string {
  switch (shown.kind) {
    case "set":
    case "nested":
    case "slice": {
      const name = seen.type.properties[shown.property]?.name ?? "";
      return `${name} is ${text(seen.property(name))}`;
    }
    case "method":
      return `${seen.type.methods[shown.method]?.name}(${shown.args.map(text).join(", ")})`;
    case "reply":
      return "an answer";
  }
}

/** A value in the notation of JSON; bytes are numbers, and 64-bit integers have an n behind them. */
function text(value: Value | undefined): string {
  const plain = (_: string, part: unknown) => {
    if (typeof part === "bigint") {
      return `${part}n`;
    }
    return part instanceof Uint8Array ? [...part] : part;
  };
  return JSON.stringify(value, plain) ?? "nothing";
}
