import { z } from "zod";

const forms =
  "use redis://HOST:PORT/DATABASE, rediss:// for TLS, either with USER:PASSWORD@ before the host, or unix:///PATH";

/** Where Redis is. Its problem never repeats the text: that may hold a password. */
export const redisUrl = z.string().superRefine((text, context) => {
  const problem = problemOf(text);
  if (problem) context.addIssue({ code: "custom", message: `${problem}; ${forms}` });
});

function problemOf(text: string): string | undefined {
  if (/^unix:\/\/\/./.test(text)) return undefined;
  if (!/^rediss?:\/\//.test(text)) return "it does not begin with redis://, rediss:// or unix:///";
  if (!URL.canParse(text)) return "it is not a URL (write special characters of a password percent-encoded)";
  const { hostname, pathname } = new URL(text);
  if (hostname === "") return "it names no host";
  if (!/^\/?\d*$/.test(pathname)) return "what follows the host is not the number of a database";
  return undefined;
}
