/** Where two texts part: what stands in one and not in the other, word by word. */

export interface Piece {
  text: string;
  /** Whether the other side does not say it. */
  own: boolean;
}

/** Words of each side that are compared; what is beyond is shown unmarked. */
const WORDS_MAX = 600;

/** Words with what follows them. Figures keep their signs: 14% is one word. */
function words(text: string): string[] {
  return text.match(/\s*\S+\s*/gu) ?? [];
}

function bare(word: string): string {
  return word.trim().toLowerCase().replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}%]+$/gu, '');
}

export function clash(a: string, b: string): [Piece[], Piece[]] {
  const [wordsA, wordsB] = [words(a), words(b)];
  const [headA, headB] = [wordsA.slice(0, WORDS_MAX), wordsB.slice(0, WORDS_MAX)];
  const [keysA, keysB] = [headA.map(bare), headB.map(bare)];
  const common = longest(keysA, keysB);
  const [ownA, ownB] = [new Set(headA.keys()), new Set(headB.keys())];
  for (const [inA, inB] of common) {
    ownA.delete(inA);
    ownB.delete(inB);
  }
  // Where nearly nothing is said alike, marks on everything would tell nothing.
  const alike = common.length / Math.max(1, Math.min(headA.length, headB.length));
  const mark = (list: string[], own: Set<number>): Piece[] => join(list, (at) => alike >= 0.2 && own.has(at));
  return [mark(wordsA, ownA), mark(wordsB, ownB)];
}

/** Words of one kind in a row as one piece; the space at a piece's end belongs to nobody. */
function join(list: string[], own: (at: number) => boolean): Piece[] {
  const pieces: Piece[] = [];
  const add = (text: string, marked: boolean): void => {
    const last = pieces.at(-1);
    if (!text) return;
    if (last && last.own === marked) last.text += text;
    else pieces.push({ text, own: marked });
  };
  list.forEach((text, at) => {
    const marked = own(at);
    const inside = marked && at + 1 < list.length && own(at + 1);
    const end = marked && !inside ? text.trimEnd().length : text.length;
    add(text.slice(0, end), marked);
    add(text.slice(end), false);
  });
  return pieces;
}

/** The longest common subsequence, as pairs of places. */
function longest(a: string[], b: string[]): [number, number][] {
  const width = b.length + 1;
  const lengths = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      lengths[i * width + j] =
        a[i] === b[j]
          ? (lengths[(i + 1) * width + j + 1] ?? 0) + 1
          : Math.max(lengths[(i + 1) * width + j] ?? 0, lengths[i * width + j + 1] ?? 0);
    }
  }
  const pairs: [number, number][] = [];
  let [i, j] = [0, 0];
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) {
      pairs.push([i, j]);
      i += 1;
      j += 1;
    } else if ((lengths[(i + 1) * width + j] ?? 0) >= (lengths[i * width + j + 1] ?? 0)) i += 1;
    else j += 1;
  }
  return pairs;
}

/** Both sides of a conflict in its hub's words, the later first; null where the words are others. */
export function sidesOf(description: string): [string, string] | null {
  const found = /^[^"]*\("([^]*)"\) contradicts [^"]* \("([^]*)"\)$/.exec(description);
  return found ? [found[1] ?? '', found[2] ?? ''] : null;
}
