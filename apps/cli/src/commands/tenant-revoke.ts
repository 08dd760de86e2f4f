import { command } from "../command.ts";
import { changeGrants, grantOptions } from "./tenant-grant.ts";

export const tenantRevoke = command({
  name: "tenant revoke",
  summary: "take profiles and pools from a tenant",
  positionals: ["TENANT"],
  about: "Its jobs that need them end as refused from now on, also those that wait. What runs goes on.",
  examples: [{ line: "berth tenant revoke acme --pool gpu", says: "" }],
  options: grantOptions,
  run: (given, context) => changeGrants("revoke", given, context),
});
