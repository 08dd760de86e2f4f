import { allowedNetworks } from "@berth/egress";
import type { FastifyRequest } from "fastify";
import { expect, test } from "vitest";
import { callerAddress } from "../src/http/caller-address.ts";

const trusted = allowedNetworks("10.0.0.0/8,127.0.0.1/32,fd00::/8");
const from = (ip: string, forwarded?: string) =>
  callerAddress({ ip, headers: { "x-forwarded-for": forwarded } } as unknown as FastifyRequest, trusted);

test.each([
  ["a connection without a proxy is its own", "203.0.113.9", undefined, "203.0.113.9"],
  ["a stranger's header counts for nothing", "203.0.113.9", "10.0.0.1, 127.0.0.1", "203.0.113.9"],
  ["a trusted proxy says who called it", "10.0.0.1", "203.0.113.9", "203.0.113.9"],
  ["what the caller wrote before that counts for nothing", "10.0.0.1", "1.1.1.1, 203.0.113.9", "203.0.113.9"],
  ["two trusted proxies are passed", "::ffff:127.0.0.1", "198.51.100.7,10.2.3.4", "198.51.100.7"],
  ["IPv6 works alike", "fd00::1", "2001:db8::5", "2001:db8::5"],
  ["what is no address ends the walk", "10.0.0.1", "203.0.113.9, unknown", "10.0.0.1"],
  ["an empty header says nothing", "10.0.0.1", "", "10.0.0.1"],
])("the caller's address: %s", (_, ip, forwarded, expected) => {
  expect(from(ip, forwarded)).toBe(expected);
});
