/** What the compiler accepts and refuses of the typed interface, with the sample world. It is compiled, and not run. */
import { type Client, EVERY, Types } from "annals-client";
import { WORLD, type World } from "./sample";

export function use(client: Client, id: bigint): void {
  const types = new Types<World>(WORLD);
  const avatars = types.of("Avatar");
  const monsters = types.of("Monster");

  const avatar = avatars.entity(client, id);
  const hp: number | undefined = avatar?.get("hp");
  const number: bigint | undefined = avatar?.base.ping(3);
  avatar?.cell.say("hello");
  const name: Promise<string> | undefined = avatar?.base.whoIs().then((is) => is.name + (is.playedSeconds - 1));
  void [hp, number, name];

  avatars.on("hp", (own, { value, old }) => own.base.ping(value - (old ?? 0)));
  monsters.on("effects", (_, { value, slice }) => void [value.length + 1, slice?.old[0]?.strength]);
  monsters.on(["effects", EVERY], (_, { value, path }) => void [value.left + 1, path.length]);
  monsters.on(["effects", EVERY, "left"], (_, { value, old }) => void (value + (old ?? 0)));
  avatars.onCall("onSay", (own, words) => own.cell.say(words.toUpperCase()));

  // @ts-expect-error: no such type
  types.of("Dragon");
  // @ts-expect-error: no such property
  avatar?.get("mana");
  // @ts-expect-error: it takes a number
  avatar?.base.ping("3");
  // @ts-expect-error: it is two-way
  const made: bigint | undefined = avatar?.base.whoIs();
  // @ts-expect-error: it returns no such value
  avatar?.base.whoIs().then(({ gold }) => void [gold, made]);
  // @ts-expect-error: `say` is not a method of the base part
  avatar?.base.say("hello");
  // @ts-expect-error: `hp` has no parts
  avatars.on(["hp", EVERY], () => {});
  // @ts-expect-error: no such field
  monsters.on(["effects", EVERY, "weight"], () => {});
  // @ts-expect-error: the value is a number
  avatars.on("hp", (_, { value }) => void value.length);
  // @ts-expect-error: no such client method
  avatars.onCall("onFly", () => {});
}
