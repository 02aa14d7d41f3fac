/** The texts of a made-up conversation: the same on every run, and of the lengths people and models write. */

/** Who says it: users and models take turns. */
type Speaker = "user" | "assistant";

const WORDS = [
  ..."order parcel delivery invoice return exchange colour size blue green small large today tomorrow please".split(
    " ",
  ),
  ..."thanks where when the a is it was my your with for from to and not yet again still maybe already".split(" "),
];

/** Words of a message, both ends included: people write less than models do. About 55 and 165 bytes on average. */
const LENGTHS: Readonly<Record<Speaker, readonly [number, number]>> = { user: [3, 17], assistant: [10, 50] };

/** The text of message `index` of a conversation in which user and assistant take turns. */
export function messageText(index: number): string {
  const random = generator(index + 1);
  const [least, most] = LENGTHS[index % 2 === 0 ? "user" : "assistant"];
  const count = least + Math.floor(random() * (most - least + 1));
  return `${index}: ${Array.from({ length: count }, () => WORDS[Math.floor(random() * WORDS.length)]).join(" ")}.`;
}

/** Numbers in [0, 1) that follow from the seed (mulberry32). */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
