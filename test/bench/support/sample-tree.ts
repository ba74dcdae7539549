/** 1,000 small text files in 20 folders, always the same, as a tar. One of them holds the needle. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { run } from "../../support/child.ts";
import { check, type Place } from "../../support/wsfs.ts";

export const SAMPLE_FILES = 1000;
export const NEEDLE = "zanzibar";

const FOLDERS = 20;
const SMALLEST = 200;
const LARGEST = 8000;
const WORDS = ["the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "and", "runs", "home"];

/** Path of the tar. */
export async function makeSampleTar(place: Place): Promise<string> {
  const tree = place.path("sample");
  const random = numbers(1);
  for (let index = 0; index < SAMPLE_FILES; index += 1) {
    const folder = join(tree, `folder-${index % FOLDERS}`);
    mkdirSync(folder, { recursive: true });
    const size = SMALLEST + random(LARGEST - SMALLEST);
    const text = textOf(size, random);
    writeFileSync(join(folder, `file-${index}.txt`), index === SAMPLE_FILES / 2 ? `${NEEDLE} ${text}` : text);
  }
  const tar = place.path("sample.tar");
  check(await run("tar", ["-cf", tar, "-C", tree, "."], { env: place.env }));
  return tar;
}

function textOf(size: number, random: (below: number) => number): string {
  let text = "";
  while (text.length < size) text += `${WORDS[random(WORDS.length)]}${random(10) === 0 ? "\n" : " "}`;
  return text;
}

/** A linear congruential generator: the same sequence on every machine. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}
