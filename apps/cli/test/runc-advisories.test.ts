import { expect, test } from "vitest";
import { runcReport } from "../src/doctor/runc-advisories.ts";

test.each([
  { version: "1.1.11", open: 2, repackaged: false },
  { version: "1.1.12", open: 1, repackaged: false },
  { version: "1.2.7", open: 1, repackaged: false },
  { version: "1.2.8", open: 0, repackaged: false },
  { version: "1.3.2", open: 1, repackaged: false },
  { version: "1.3.3", open: 0, repackaged: false },
  { version: "1.4.0-rc.2", open: 1, repackaged: false },
  { version: "1.4.0-rc.3", open: 0, repackaged: false },
  { version: "1.4.0", open: 0, repackaged: false },
  { version: "1.5.1", open: 0, repackaged: false },
  { version: "1.0.0-rc6", open: 3, repackaged: false },
  { version: "1.1.5+ds1", open: 2, repackaged: true },
  { version: "1.1.12-0ubuntu2", open: 1, repackaged: true },
])("runc $version has $open known ways out", ({ version, open, repackaged }) => {
  const report = runcReport(version);
  expect(report?.open.length).toBe(open);
  expect(report?.repackaged).toBe(repackaged);
});

test("doctor recognizes a distribution's runc by its package, where the version is a plain number", () => {
  expect(runcReport("1.1.12", "1.1.12-0ubuntu2~22.04.1")?.repackaged).toBe(true);
  expect(runcReport("1.1.12", "v1.1.12-0-g51d5e94")?.repackaged).toBe(false);
});

test("doctor does not take a runc version that it cannot read for a fixed one", () => {
  expect(runcReport("unknown")).toBeUndefined();
});
