/**
 * An agent on the fleet: plan, act, look, decide, until it is done or its budget is spent.
 *
 *   REDIS_URL=redis://127.0.0.1:6379 node --conditions=@berth/source examples/orchestrator.ts
 *
 * The planner is a stand-in that returns fixed actions. Put a model in its place: it gets the task and the steps so far with
 * their results, and returns the next action. Everything else can stay.
 */
import { Berth, type JobOptions, type Tenant } from "@berth/client";
import { exitCodeOf, isSuccess, type JobKind, type JobRequestInput, type ResultOf } from "@berth/protocol";

/** What the model may do: any job's request, or stop. A tool call of a model's API maps onto this one to one. */
type Action = JobRequestInput | { readonly kind: "answer"; readonly answer: string };
interface Step {
  readonly action: Action;
  readonly seen: string;
}

const mostSteps = 20;
const shownCharacters = 8_000;
const test =
  "from words import count\nassert count('one two  two') == {'one': 1, 'two': 2}, count('one two  two')\n";

async function plan(task: string, done: readonly Step[]): Promise<Action> {
  const last = done.at(-1);
  switch (done.length) {
    case 0:
      return { kind: "write", path: "test.py", content: test };
    case 1:
      return {
        kind: "write",
        path: "words.py",
        content: "def count(text):\n    return len(text.split(' '))\n",
      };
    case 2:
    case 4:
      return { kind: "exec", command: "python3 test.py", limits: { timeoutMs: 20_000 } };
    case 3: // It has seen the AssertionError.
      return { kind: "edit", path: "words.py", find: "return len(text.split(' '))", replace: fixed };
    case 5:
      return { kind: "read", path: "words.py" };
    default:
      return { kind: "answer", answer: `${task}: ${last?.seen.split("\n").length} lines` };
  }
}
const fixed = "words = text.split()\n    return {word: words.count(word) for word in words}";

/** A result as a model should see it: the output, bounded, and how the job ended. */
function seen({ outcome, content, stdout = "", stderr = "" }: ResultOf<JobKind>): string {
  const text = content ?? `${stdout}${stderr}`;
  const code = exitCodeOf(outcome);
  const how =
    "message" in outcome ? `${outcome.kind}: ${outcome.message}` : `${outcome.kind}, exit code ${code}`;
  const shown = text.length > shownCharacters ? `${text.slice(0, shownCharacters)}\n[cut]` : text;
  return isSuccess(outcome) ? shown : `${shown}[${how}]`;
}

async function work(tenant: Tenant, task: string, where: JobOptions): Promise<string> {
  const done: Step[] = [];
  while (done.length < mostSteps) {
    const action = await plan(task, done);
    if (action.kind === "answer") return action.answer;
    // Awaiting returns the result of a failed command, too: the planner handles it, not a catch block.
    const result = await tenant.run(action, where);
    done.push({ action, seen: seen(result) });
    console.log(`${done.length}. ${action.kind}: ${result.outcome.kind}`, lastLines(seen(result)));
  }
  return "out of steps";
}

function lastLines(text: string): string {
  return text.trimEnd().split("\n").slice(-2).join(" ");
}

const berth = new Berth({ redis: process.env.REDIS_URL ?? "redis://127.0.0.1:6379" });
const acme = berth.tenant("acme");
// A sandbox of the task's own, empty at first. Leave `scope` out to let all of a tenant's tasks share one workspace.
const where = { session: `task-${Date.now()}`, scope: "session" } as const;
try {
  console.log(await work(acme, "count words", where));
} finally {
  await acme.destroy(where); // container and workspace
  await berth.close();
}
