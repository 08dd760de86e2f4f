/** Shorter values would match ordinary output by chance. */
export const shortestSecretBytes = 8;

/**
 * Every form of a value that is masked: as it is, base64 (both alphabets, at each of the three places where it may begin within a
 * group of three bytes), hexadecimal and URL-encoded, each in upper and lower case. None for a value that is too short.
 */
export function formsOf(value: Buffer): Buffer[] {
  if (value.length < shortestSecretBytes) return [];
  const hex = value.toString("hex");
  const texts = [...base64Forms(value), hex, hex.toUpperCase(), ...urlForms(value)];
  const forms = [value, ...texts.map((text) => Buffer.from(text, "latin1"))];
  const seen = new Map(forms.map((form) => [form.toString("latin1"), form]));
  return [...seen.values()];
}

/** Bytes of all forms of a value, which count for the bytes that a scrubber may have. */
export function formBytes(value: Buffer): number {
  return formsOf(value).reduce((sum, { length }) => sum + length, 0);
}

/** Only the characters that depend on the value alone: those at its edges share bits with neighbouring bytes. */
function base64Forms(value: Buffer): string[] {
  return [0, 1, 2].flatMap((before) => {
    const encoded = Buffer.concat([Buffer.alloc(before), value]).toString("base64");
    const first = Math.ceil((before * 8) / 6);
    const last = Math.floor(((before + value.length) * 8) / 6);
    const core = encoded.slice(first, last);
    return [core, core.replaceAll("+", "-").replaceAll("/", "_")];
  });
}

/** As JavaScript, Python, HTML forms and strict encoders write it, and with every byte encoded. */
const urlTables = ["-_.!~*'()", "-_.~", "-_.~/", "-_.*", undefined].flatMap((marks) => {
  const isKept = (character: string) => /[A-Za-z0-9]/.test(character) || marks?.includes(character);
  const upper = Array.from({ length: 256 }, (_, byte) => {
    const character = String.fromCharCode(byte);
    return marks !== undefined && isKept(character)
      ? character
      : `%${byte.toString(16).padStart(2, "0").toUpperCase()}`;
  });
  return [upper, upper.map((text) => (text.length > 1 ? text.toLowerCase() : text))];
});

function urlForms(value: Buffer): string[] {
  return urlTables.flatMap((table) => {
    let text = "";
    for (const byte of value) text += table[byte] as string;
    return text.includes("%20") ? [text, text.replaceAll("%20", "+")] : [text];
  });
}
