// Serves the files of a folder to a browser of this machine, and prints the port: node serve.mjs FOLDER
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".mjs": "text/javascript" };
const [folder] = process.argv.slice(2);

const server = createServer(async ({ url }, response) => {
  const path = normalize(new URL(url, "http://localhost").pathname);
  try {
    const bytes = await readFile(join(folder, path));
    response.writeHead(200, { "content-type": TYPES[extname(path)] ?? "application/octet-stream" }).end(bytes);
  } catch {
    response.writeHead(404).end();
  }
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
