// Plays the scenario in Node: node node.mjs URL
import { play } from "./scenario.mjs";

await play(process.argv[2], (said) => console.log(said));
process.exit(0);
