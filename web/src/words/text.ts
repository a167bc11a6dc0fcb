/** Text that agents gave, made harmless to read. It is never markup; what is left are signs that would mislead the eye. */

/** Signs that change the direction of what follows, beyond any isolation, and other signs that cannot be seen. */
const UNSEEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f\u0080-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g;

/** The text with its unseen signs shown as such. */
export function shown(text: string): string {
  return text.replace(UNSEEN, (sign) => {
    const code = sign.codePointAt(0) ?? 0;
    return code < 0x20 ? String.fromCodePoint(0x2400 + code) : '\u2423';
  });
}

/** One line of at most so many characters, cut between characters. */
export function oneLine(text: string, most = 240): string {
  // Only what can be shown is looked at: a text may have 256 KiB.
  const head = text.slice(0, most * 4);
  const line = shown(head.replace(/\s+/g, ' ').trim());
  const characters = [...line];
  const cut = characters.length > most || head.length < text.length;
  return cut ? `${characters.slice(0, most).join('')}…` : line;
}

/** The beginning of a long text, and how much more there is. */
export function clamp(text: string, most = 1_200): { head: string; more: number } {
  if (text.length <= most * 1.15) return { head: shown(text), more: 0 };
  let end = most;
  // Not inside a pair of surrogates.
  if (/[\ud800-\udbff]/.test(text.charAt(end - 1))) end -= 1;
  return { head: shown(text.slice(0, end)), more: text.length - end };
}
