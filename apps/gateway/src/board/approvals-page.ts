import type { Approval } from "@berth/client";
import { htmlOf, smallPage } from "../http/small-page.ts";

export interface ApprovalsPage {
  readonly approvals: readonly Approval[];
  readonly isReadOnly: boolean;
  /** What went wrong with the last decision. */
  readonly problem?: string | undefined;
}

/** Jobs that wait for an administrator, each with what it would run. */
export function approvalsPage({ approvals, isReadOnly, problem }: ApprovalsPage): string {
  const about =
    approvals.length === 0
      ? "<p>No job waits for an approval.</p>"
      : approvals.map((one) => entryOf(one, isReadOnly)).join("");
  const alert = problem === undefined ? "" : `<p class="wrong" role="alert">${htmlOf(problem)}</p>`;
  return smallPage("Approvals", `${alert}${about}<p><a href="/board/">Back to the board</a></p>`);
}

function entryOf(
  { jobId, tenant, session, agent, kind, preview, digest, expiresAtMs }: Approval,
  isReadOnly: boolean,
): string {
  const whose = [tenant, `session ${session}`, ...(agent === undefined ? [] : [`agent ${agent}`])].join(", ");
  const until = new Date(expiresAtMs).toISOString().replace(/\.\d+Z$/, "Z");
  // Refuse is first: Enter in the reason takes the first button.
  const form = `<form method="post" action="/board/approvals"><input type="hidden" name="job" value="${htmlOf(jobId)}"><input type="hidden" name="digest" value="${htmlOf(digest)}">
<label>Reason, which the tenant reads<input name="reason" maxlength="500"></label>
<button name="decision" value="refuse">Refuse</button><button name="decision" value="approve">Approve</button></form>`;
  return `<section><dl><dt>${htmlOf(jobId)}</dt><dd>${htmlOf(whose)}; ${htmlOf(kind)}; until ${until}</dd></dl>
<pre style="white-space:pre-wrap;overflow-wrap:anywhere">${htmlOf(preview)}</pre>${isReadOnly ? "" : form}</section>`;
}
