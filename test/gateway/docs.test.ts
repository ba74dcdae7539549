import { expect, test } from "vitest";
import { openApiDocument } from "../../src/contract/openapi.ts";
import { problem } from "../../src/contract/resources.ts";
import { createTestCore } from "../support/gateway-core.ts";
import { serveCore } from "./support/gateway-http.ts";

test("the document served is the contract's, and needs no token", async () => {
  const { baseUrl } = await serveCore(createTestCore());
  const answer = await fetch(`${baseUrl}/openapi.json`);
  expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "application/json"]);
  expect(await answer.json()).toEqual(openApiDocument());
});

test("the page and all it loads come from the gateway alone", async () => {
  const { baseUrl } = await serveCore(createTestCore());
  const page = await fetch(`${baseUrl}/docs`);
  const html = await page.text();
  expect([page.status, page.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
  const policy = page.headers.get("content-security-policy") ?? "";
  expect(policy).toContain("default-src 'none'");
  expect(policy).not.toMatch(/https?:|\*/);
  const loaded = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, url = ""]) => url);
  expect(loaded.length).toBeGreaterThan(3);
  for (const url of loaded) {
    expect(url).toMatch(/^\/docs\//);
    const asset = await fetch(`${baseUrl}${url}`);
    expect([url, asset.status]).toEqual([url, 200]);
    const text = await asset.text();
    const elsewhere = [...text.matchAll(/(?:url\(|@import)\s*["']?([^"')\s]{0,80})/g)].map(([, to = ""]) => to);
    if (url.endsWith(".css")) expect([url, elsewhere.filter((to) => !to.startsWith("data:"))]).toEqual([url, []]);
  }
  // Inline scripts would be stopped by the policy.
  expect(html).not.toMatch(/<script>|<script [^>]*>\s*[^<\s]|\son\w+=/);
  expect(await (await fetch(`${baseUrl}/docs/json`)).json()).toEqual(openApiDocument());
  const none = await fetch(`${baseUrl}/docs/static/none`);
  expect([none.status, problem.parse(await none.json()).status]).toEqual([404, 404]);
});
