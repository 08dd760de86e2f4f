#!lua flags=allow-oom
-- Says which process speaks for a worker id, and what it says of itself. Also its heartbeat.
-- KEYS  1 worker (hash)  2 workers (sorted set, by last heartbeat)  3 writes (hash)
-- ARGV  1 worker id  2 instance  3 instance that it may replace, '' for none  4 ms until it is forgotten
--       5 '1': it is to be seen among the workers, which it is not while it starts  6… names and values of what it says
-- Reply {'ours'}
--       {'taken', instance}   another process does
--- @include writes.lua
local current = redis.call('HGET', KEYS[1], 'instance')
if current and current ~= ARGV[2] and current ~= ARGV[3] then
  return {'taken', current}
end
redis.call('HSET', KEYS[1], 'instance', ARGV[2], unpack(ARGV, 6))
redis.call('PEXPIRE', KEYS[1], ARGV[4])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
writesSince(KEYS[3], now)
if ARGV[5] == '1' then
  redis.call('ZADD', KEYS[2], now, ARGV[1])
end
return {'ours'}
