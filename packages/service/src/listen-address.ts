import { z } from "zod";

/** Parses `HOST:PORT`. */
export const listenAddress = z
  .string()
  .regex(/^(\[[0-9a-f:]+\]|[^\s:]+):\d{1,5}$/i, {
    error: "HOST:PORT, such as 127.0.0.1:9464 or [::1]:9464",
  })
  .transform((text) => {
    const colon = text.lastIndexOf(":");
    return { host: text.slice(0, colon).replace(/^\[|\]$/g, ""), port: Number(text.slice(colon + 1)) };
  })
  .refine(({ port }) => port <= 65_535, { error: "a port is at most 65535" });
export type ListenAddress = z.infer<typeof listenAddress>;
