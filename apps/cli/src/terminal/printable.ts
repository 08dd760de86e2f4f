/**
 * Makes a tenant's text safe for a terminal: names, reasons, paths. Control characters could move the cursor, change colours or
 * make the terminal send an answer, so they are shown escaped.
 */
export function printable(text: string): string {
  return text.replaceAll(/\p{Cc}|\p{Cf}|\u2028|\u2029/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return code > 0xff ? `\\u{${code.toString(16)}}` : `\\x${code.toString(16).padStart(2, "0")}`;
  });
}
