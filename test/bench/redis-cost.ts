import type { Redis } from "@berth/redis";

/** A Redis' own counters since its start. */
export class RedisCost {
  readonly scripts: number;
  /** Commands, including those within scripts. */
  readonly calls: number;
  readonly scriptUs: number;

  private constructor(scripts: number, calls: number, scriptUs: number) {
    this.scripts = scripts;
    this.calls = calls;
    this.scriptUs = scriptUs;
  }

  static async read(redis: Redis): Promise<RedisCost> {
    let [scripts, calls, scriptUs] = [0, 0, 0];
    for (const [, name, count, us] of (await redis.info("commandstats")).matchAll(
      /^cmdstat_(\S+?):calls=(\d+),usec=(\d+)/gm,
    )) {
      const isScript = name === "eval" || name === "evalsha";
      if (isScript) scripts += Number(count);
      else calls += Number(count);
      if (isScript) scriptUs += Number(us);
    }
    return new RedisCost(scripts, calls, scriptUs);
  }

  since(before: RedisCost): RedisCost {
    return new RedisCost(
      this.scripts - before.scripts,
      this.calls - before.calls,
      this.scriptUs - before.scriptUs,
    );
  }
}
