import { describe, expect } from "vitest";
import { browserNote, browserPath, withBrowser } from "../support/browser.ts";
import { adminKey, fleetTest as test } from "../support/gateway.ts";

const exec = (tenant: string, command: string, more: object = {}) => ({
  tenant,
  request: { kind: "exec", command },
  ...more,
});

describe.skipIf(browserPath === undefined)(`the board in a browser${browserNote}`, () => {
  test("an operator logs in, sees what runs and what failed, runs a dead letter again, and finds a tenant by name", async ({
    fleet,
    gateways,
  }) => {
    await fleet.worker("worker-1");
    const gateway = await gateways.start();
    const dying = exec("acme", "echo last words; exit 7", {
      retry: { attempts: 2, backoffMs: 0 },
      id: "doomed",
    });
    await gateway.call("POST", "/v1/jobs?wait=30", { body: dying });
    await gateway.call("POST", "/v1/jobs?wait=30", { body: exec("quiet-one", "true") });
    for (let index = 0; index < 21; index++) {
      await fleet.redis.connect().zadd("berth:sandboxes", Date.now() + 60_000 + index, `busy-${index}`);
    }
    const running = (
      await gateway.call("POST", "/v1/jobs", { body: exec("acme", "sleep 300", { id: "long-one" }) })
    ).body;
    expect(running.id).toBe("long-one");

    await withBrowser(async (browser) => {
      const page = await browser.newPage();
      const problems: string[] = [];
      page.on("pageerror", (error) => problems.push(error.message));
      page.on("console", (said) => {
        if (said.text().includes("Content Security Policy")) problems.push(said.text());
      });
      await page.goto(`${gateway.url}/`);
      await page.getByRole("link", { name: "Board" }).click();
      await page.getByLabel("Admin key").fill("wrong");
      await page.getByRole("button", { name: "Log in" }).click();
      await page.getByRole("alert").waitFor();
      await page.getByLabel("Admin key").fill(adminKey);
      await page.getByRole("button", { name: "Log in" }).click();
      await page.getByText("dead letters").first().waitFor();
      expect(await page.getByText("quiet-one").count()).toBe(0);
      await page.getByText(/^20 of \d+ sandboxes/).waitFor();
      await page.locator("button:has(.lucide-ellipsis-vertical):visible").click();
      expect(await page.getByRole("menuitem").filter({ visible: true }).allInnerTexts()).toEqual([
        "Retry 1 failed jobs in all queues",
        "Sort by",
      ]);
      await page.keyboard.press("Escape");

      await page.goto(`${gateway.url}/board/find`);
      await page.getByLabel("Tenant").fill("quiet-one");
      await page.getByRole("button", { name: "Show on the board" }).click();
      await page.waitForURL("**/board/queue/tenants%3Aquiet-one");
      await page.getByText("quiet-one").first().waitFor();

      await page.goto(`${gateway.url}/board/find?tenant=acme`);
      await page.goto(`${gateway.url}/board/queue/tenants%3Aacme?status=active`);
      await page.getByText("long-one").first().waitFor();

      await page.goto(`${gateway.url}/board/queue/tenants%3Aacme?status=failed`);
      await page.getByText("exited 7", { exact: true }).waitFor();
      await page.getByText("exited 7; attempt 2 follows").waitFor();
      const icons = page.locator("main button:has(svg):visible, section button:has(svg):visible");
      const shown = await icons.evaluateAll((buttons) =>
        buttons.flatMap((button) => [...button.querySelectorAll("svg")].map((icon) => icon.classList[1])),
      );
      expect(new Set(shown), "buttons that act").toEqual(new Set(["lucide-refresh-cw"]));
      await page.goto(`${gateway.url}/board/queue/tenants%3Aacme/doomed~2?status=failed`);
      await page.getByText("Logs", { exact: true }).click();
      await page.getByText("last words").waitFor();

      await page.goto(`${gateway.url}/board/queue/fleet%3Adead%20letters?status=failed`);
      await page.getByText("d-doomed").first().waitFor();
      await page.getByRole("button", { name: "Retry all" }).click();
      await page.getByRole("button", { name: "Confirm" }).click();
      await expect
        .poll(async () => (await gateway.call("GET", "/v1/jobs/doomed-redrive-1")).status, {
          timeout: 30_000,
        })
        .toBe(200);
      expect(problems).toEqual([]);
    });
    await gateway.call("DELETE", "/v1/jobs/long-one");
  }, 180_000);
});
