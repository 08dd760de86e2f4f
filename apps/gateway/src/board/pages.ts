import type { Failure } from "../http/failure.ts";
import { problemBody } from "../http/problem.ts";
import { htmlOf, smallPage } from "../http/small-page.ts";

export function loginPage(problem?: string): string {
  return smallPage(
    "Berth board",
    `${alert(problem)}
<form method="post" action="/board/login"><label>Admin key<input type="password" name="key" autocomplete="current-password" required autofocus></label>
<button type="submit">Log in</button></form>`,
  );
}

export interface FindPage {
  /** What was looked for. */
  readonly name?: string;
  /** Tenants with that in their names. */
  readonly found?: readonly string[];
  /** Sandboxes that the board shows now. */
  readonly shown: readonly string[];
  /** How many those are, of how many. */
  readonly summary: string;
}

export function findPage({ name = "", found, shown, summary }: FindPage): string {
  const none = found?.length === 0 ? "No tenant of such a name is known." : undefined;
  const links = found?.map(
    (tenant) => `<li><a href="/board/find?tenant=${htmlOf(tenant)}">${htmlOf(tenant)}</a>`,
  );
  return smallPage(
    "Find a tenant",
    `${alert(none)}
<form method="get" action="/board/find"><label>Tenant, or a part of its name<input name="tenant" required autofocus maxlength="255" value="${htmlOf(name)}"></label>
<button type="submit">Show on the board</button></form>
${links?.length ? `<p>Tenants with “${htmlOf(name)}” in their names:</p><ul>${links.join("")}</ul>` : ""}
<p>The sandboxes of a tenant that was found stay on the board for ten minutes. On the board now: ${htmlOf(summary)}.</p>
<ul>${shown.map((key) => `<li><a href="/board/queue/tenants%3A${htmlOf(key)}">${htmlOf(key)}</a>`).join("")}</ul>
<p><a href="/board/">Back to the board</a></p>
<form method="post" action="/board/logout" id="log-out"><button type="submit">Log out</button></form>`,
  );
}

function alert(problem: string | undefined): string {
  return problem === undefined ? "" : `<p class="wrong" role="alert">${htmlOf(problem)}</p>`;
}

/** For the dashboard: its own scripts and nothing from elsewhere, fonts included. */
export const boardPolicy =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'";

/**
 * Bull Board's page without the fonts of another site, and without the buttons whose requests are refused (`changes.ts`): of those that
 * act on jobs only the retry stays. Its class names end in a hash; the icons' names are lucide's.
 */
export function boardPage(html: string): string {
  return html.replace(/<link [^>]*fonts\.googleapis\.com[^>]*>/g, `<style>${hiding}</style>`);
}

const hiding = `
:is([class*="jobActions-"],[class*="queueActions-"]) li:not(:has(.lucide-refresh-cw)),
button[class^="trigger-"]:has(>.lucide-ellipsis-vertical),
[role="menuitem"]:has(>:is(.lucide-pause,.lucide-play)){display:none}`;

/** A failure with the two fields that Bull Board's script shows. */
export function boardProblem(failure: Failure, requestId?: string): object {
  return { ...problemBody(failure, requestId), error: failure.title, message: failure.detail };
}
