export interface Case {
  readonly state: "passed" | "skipped" | "failed";
  /** What the test printed when it failed. */
  readonly text: string;
}

/** Failed cases by the test's full name. */
export type Cases = ReadonlyMap<string, Case>;

/** Reads the JUnit report that CPython's test runner writes. */
export function casesIn(report: string): Cases {
  const found = report.matchAll(/<testcase name="([^"]*)"[^>]*?(?:\/>|>(.*?)<\/testcase>)/gs);
  return new Map(
    [...found].map(([, name = "", inner = ""]) => {
      const failed = /<(?:failure|error)\b[^>]*>(.*?)<\/(?:failure|error)>/s.exec(inner);
      const state = failed ? "failed" : inner.includes("<skipped") ? "skipped" : "passed";
      return [name, { state, text: plainText(failed?.[1] ?? "") }] as const;
    }),
  );
}

export function failures(cases: Cases): string[] {
  return [...cases].filter(([, { state }]) => state === "failed").map(([name]) => name);
}

function plainText(xml: string): string {
  const names: Record<string, string> = { lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" };
  return xml
    .replace(/<!\[CDATA\[|\]\]>/g, "")
    .replace(/&(\w+);/g, (whole, name: string) => names[name] ?? whole);
}
