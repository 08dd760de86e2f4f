/** Characters and ranges, such as `a-z0-9._-`. A `-` that is first, last or after a range is literal. */
function rangesIn(list: string): readonly (readonly [from: string, to: string])[] {
  const ranges: [string, string][] = [];
  for (let at = 0; at < list.length; at++) {
    const from = list[at] ?? "";
    const to = list[at + 1] === "-" ? list[at + 2] : undefined;
    ranges.push([from, to ?? from]);
    if (to !== undefined) at += 2;
  }
  return ranges;
}

export function isCharacterList(list: string): boolean {
  return /^[\x20-\x7e]+$/.test(list) && rangesIn(list).every(([from, to]) => from <= to);
}

/** A regular expression that matches in linear time for any list. JSON Schema can contain it. */
export function charactersPattern(list: string): RegExp {
  const escaped = (one: string) => (/[a-zA-Z0-9]/.test(one) ? one : `\\x${one.charCodeAt(0).toString(16)}`);
  const ranges = rangesIn(list).map(([from, to]) =>
    from === to ? escaped(from) : `${escaped(from)}-${escaped(to)}`,
  );
  return new RegExp(`^[${ranges.join("")}]*$`);
}
