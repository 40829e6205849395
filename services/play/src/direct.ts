/** The way to the realm past the server of this page: WebTransport, with the realm's development certificates. */
import type { WebTransportAccess } from "../../client-ts/src/index.js";

interface Transport {
  readonly login: string;
  /** SHA-256 hashes, in hexadecimal digits. */
  readonly certificates: readonly string[];
}

async function ask(): Promise<Transport> {
  const response = await fetch("/transport");
  if (!response.ok) {
    throw new Error(`the server of this page does not say how to reach the realm: ${await response.text()}`);
  }
  return (await response.json()) as Transport;
}

function bytes(digits: string): Uint8Array {
  return Uint8Array.from(digits.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}

/** How WebTransport reaches the realm; `false` if that cannot be found out. */
export async function findDirect(): Promise<WebTransportAccess | false> {
  try {
    const { login } = await ask();
    return {
      url: login,
      resolve: ({ host, port }) => `https://${host}:${port}`,
      // They are renewed every few days.
      certificateHashes: async () => (await ask()).certificates.map(bytes),
    };
  } catch (error) {
    console.error(error);
    return false;
  }
}
