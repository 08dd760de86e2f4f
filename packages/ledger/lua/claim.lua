#!lua flags=allow-oom
-- Heartbeat: claims a worker id for one process, or renews the claim, and publishes the worker's status.
-- KEYS  1 worker (hash)  2 workers (sorted set, by last heartbeat)  3 writes (hash)
-- ARGV  1 worker id  2 instance  3 instance that it may replace, '' for none  4 ms until the claim expires
--       5 '1': list it among the workers; '0' while it starts  6… names and values of its status
-- Reply {'ours'}
--       {'taken', instance}   another process has the id
--- @include now.lua
--- @include writes.lua
local current = redis.call('HGET', KEYS[1], 'instance')
if current and current ~= ARGV[2] and current ~= ARGV[3] then
  return {'taken', current}
end
redis.call('HSET', KEYS[1], 'instance', ARGV[2], unpack(ARGV, 6))
redis.call('PEXPIRE', KEYS[1], ARGV[4])
local now = redisNow()
writesSince(KEYS[3], now)
if ARGV[5] == '1' then
  redis.call('ZADD', KEYS[2], now, ARGV[1])
end
return {'ours'}
