import { command } from "../command.ts";
import { changeGrants, grantOptions } from "./tenant-grant.ts";

export const tenantRevoke = command({
  name: "tenant revoke",
  summary: "take profiles, pools and peers from a tenant",
  positionals: ["TENANT"],
  about:
    "Its jobs that need them are refused from now on, also those that wait. Running jobs go on.\n" +
    "A peer's files are missing from its next containers; `berth stop TENANT` makes the next job start one.",
  examples: [{ line: "berth tenant revoke acme --pool gpu --peer globex", note: "" }],
  options: grantOptions,
  run: (given, context) => changeGrants("revoke", given, context),
});
