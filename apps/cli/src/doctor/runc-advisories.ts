interface Advisory {
  readonly names: string;
  /** The first fixed version of each release line, oldest line first. Older lines have no fix. */
  readonly fixedIn: readonly string[];
}

/**
 * Container escapes that a tenant of ours could use, by the versions in runc's changelog. Two are left out: CVE-2026-41579 needs a
 * hostile image, and our operators choose the images; CVE-2026-119101 needs a restored checkpoint, and Berth restores none.
 */
const advisories: readonly Advisory[] = [
  { names: "CVE-2025-31133, CVE-2025-52565, CVE-2025-52881", fixedIn: ["1.2.8", "1.3.3", "1.4.0-rc.3"] },
  { names: "CVE-2024-21626", fixedIn: ["1.1.12"] },
  { names: "CVE-2019-5736", fixedIn: ["1.0.0-rc7"] },
];

export interface RuncReport {
  /** Vulnerable by its version number. */
  readonly open: readonly string[];
  /** A distribution's build, which may have the fixes under an older number. */
  readonly repackaged: boolean;
}

const distributions = /[+~]|ubuntu|deb\d|\.el\d|\.fc\d|amzn/;

/** Advisories for a runc, by its version text; undefined when that cannot be parsed. */
export function runcReport(version: string, commit = ""): RuncReport | undefined {
  const parts = partsOf(version);
  if (!parts) return undefined;
  const open = advisories.filter(({ fixedIn }) => isOpen(parts, fixedIn)).map(({ names }) => names);
  return { open, repackaged: distributions.test(version) || distributions.test(commit) };
}

type Parts = readonly [major: number, minor: number, patch: number, candidate: number];

function isOpen(version: Parts, fixedIn: readonly string[]): boolean {
  const fixes = fixedIn.map((text) => partsOf(text) as Parts);
  const ofLine = fixes.find(([major, minor]) => major === version[0] && minor === version[1]);
  if (ofLine) return compare(version, ofLine) < 0;
  const last = fixes.at(-1);
  return last !== undefined && compare(version, last) < 0;
}

function partsOf(version: string): Parts | undefined {
  const found = /^v?(\d+)\.(\d+)(?:\.(\d+))?(?:-rc\.?(\d+))?/.exec(version);
  if (!found) return undefined;
  const [, major, minor, patch = "0", candidate] = found;
  return [
    Number(major),
    Number(minor),
    Number(patch),
    candidate === undefined ? Number.POSITIVE_INFINITY : Number(candidate),
  ];
}

function compare(a: Parts, b: Parts): number {
  for (const index of [0, 1, 2, 3] as const) {
    if (a[index] !== b[index]) return a[index] < b[index] ? -1 : 1;
  }
  return 0;
}
