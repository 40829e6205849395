// Runs a player in Node: node node.mjs URL. Steps come by standard input, and observations go to standard output.
import { createInterface } from "node:readline";
import { Network, Runner, answering } from "./runner.mjs";

const say = (line) => console.log(JSON.stringify(line));
const access = { url: process.argv[2], webTransport: false, network: new Network() };
const take = answering(new Runner(access, say), say);
createInterface({ input: process.stdin })
  .on("line", take)
  .on("close", () => process.exit(0));
