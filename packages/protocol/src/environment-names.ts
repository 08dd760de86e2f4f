import { z } from "zod";

/** Variables that make an interpreter, the loader or a shell run code that the caller did not name. */
const blocked: ReadonlySet<string> = new Set([
  ...["BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "PS4", "PROMPT_COMMAND", "IFS"],
  ...["GCONV_PATH", "GETCONF_DIR", "HOSTALIASES", "LOCALDOMAIN", "LOCPATH", "NLSPATH"],
  ...["RESOLV_HOST_CONF", "RES_OPTIONS", "MALLOC_TRACE", "GLIBC_TUNABLES"],
  ...["NODE_OPTIONS", "NODE_REPL_EXTERNAL_MODULE", "ELECTRON_RUN_AS_NODE"],
  ...["PYTHONSTARTUP", "PYTHONHOME", "PYTHONINSPECT", "PYTHONBREAKPOINT", "PYTHONWARNINGS"],
  ...["PERL5OPT", "PERL5DB", "RUBYOPT"],
  ...["JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS"],
]);
const blockedBeginnings = ["LD_", "DYLD_", "BASH_FUNC_"];

/** The worker's own variables; never passed to a sandbox. */
const workersOwn: ReadonlySet<string> = new Set(["REDIS_URL"]);
const workersBeginnings = ["BERTH_", "DOCKER_"];

function isBlockedVariable(name: string): boolean {
  return blocked.has(name) || blockedBeginnings.some((beginning) => name.startsWith(beginning));
}

const form = z
  .string()
  .max(256)
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, { error: "an environment name is letters, digits and _" });

/** Name of a variable that a command gets. */
export const variableName = form.superRefine((name, context) => {
  if (isBlockedVariable(name))
    context.addIssue({
      code: "custom",
      message: `${name} cannot be set: it makes programs run code that their caller did not name`,
    });
});

/** Name of a worker's variable that commands get unchanged. */
export const passedName = variableName.superRefine((name, context) => {
  if (workersOwn.has(name) || workersBeginnings.some((beginning) => name.startsWith(beginning)))
    context.addIssue({ code: "custom", message: `${name} is the worker's own and is never passed on` });
});
