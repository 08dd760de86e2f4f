const style = `:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:26rem;margin:15vh auto;padding:0 1rem}
input,button{font:inherit;width:100%;box-sizing:border-box;padding:.5rem .7rem;margin:.3rem 0}.wrong{color:#b03a3a}`;

function page(title: string, body: string): string {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${title}</title><style>${style}</style></head><body><h1>${title}</h1>${body}</body></html>`;
}

export function loginPage(problem?: string): string {
  return page(
    "Berth board",
    `${problem === undefined ? "" : `<p class="wrong" role="alert">${problem}</p>`}
<form method="post" action="/board/login"><label>Admin key<input type="password" name="key" autocomplete="current-password" required autofocus></label>
<button type="submit">Log in</button></form>`,
  );
}

export function findPage(problem?: string): string {
  return page(
    "Find a tenant",
    `${problem === undefined ? "<p>Its sandboxes are shown on the board for ten minutes.</p>" : `<p class="wrong" role="alert">${problem}</p>`}
<form method="get" action="/board/find"><label>Tenant<input name="tenant" required autofocus pattern="[a-z0-9]([a-z0-9_\\-]{0,61}[a-z0-9])?"></label>
<button type="submit">Show on the board</button></form><p><a href="/board/">Back to the board</a></p>
<form method="post" action="/board/logout"><button type="submit">Log out</button></form>`,
  );
}

/** For these pages: no script at all. */
export const pagePolicy =
  "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/** For the dashboard: its own scripts and nothing from elsewhere, fonts included. */
export const boardPolicy =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'";
