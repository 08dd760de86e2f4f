import { command } from "../command.ts";
import { storeSecret } from "./secret-set.ts";

export const secretRotate = command({
  name: "secret rotate",
  summary: "replace the value of a tenant's secret by that on stdin",
  positionals: ["TENANT", "NAME"],
  about: "Refused when there is none of that name. Running commands keep the old value, which stays masked.",
  examples: [{ line: "berth secret rotate acme OPENAI_KEY < new-key.txt", note: "" }],
  options: {},
  run: (given, context) => storeSecret(given, context, { mustExist: true, done: "has its new value" }),
});
