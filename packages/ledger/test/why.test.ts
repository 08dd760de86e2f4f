import { sandboxKey } from "@berth/protocol";
import { expect, test } from "vitest";
import { type Why, whyForTenant } from "../src/jobs/why-texts.ts";

const busy: Why = {
  jobId: "globex.mine",
  state: "waiting",
  tenant: "globex",
  sandbox: sandboxKey.parse("shared.all"),
  ...{ heldBy: "worker-1", home: "host-a", pool: "default" },
  codes: ["session-busy"],
  reasons: ["its session main is busy: the job acme.secret-name has run for 3 s on worker-1"],
  behind: { jobId: "acme.secret-name", tenant: "acme", session: "main", runningMs: 3_000 },
};
const shown = (id: string) => id.replace(/^globex\./, "");

test("in the sandbox that all tenants share, a tenant does not learn which other tenant's job it waits for", () => {
  const shownWhy = whyForTenant(busy, shown);
  expect(shownWhy.reasons).toEqual(["its session is busy with another job"]);
  expect(JSON.stringify(shownWhy)).not.toMatch(/acme|secret-name|worker-1|host-a/);
});

test("a tenant learns which of its own jobs it waits for, by the id that it knows", () => {
  const behind = { jobId: "globex.first", tenant: "globex", session: "main", runningMs: 61_000 };
  const shownWhy = whyForTenant({ ...busy, behind }, shown);
  expect(shownWhy).toMatchObject({ jobId: "mine", behind: { ...behind, jobId: "first" } });
  expect(shownWhy.reasons).toEqual(["its session main is busy: the job first has run for 61 s"]);
});
