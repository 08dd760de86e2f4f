#!lua flags=allow-oom
-- Removes expired leases from the index of leases, and returns the sandboxes among them that have work: their holders died. Each is
-- returned once, so that many of them hide no others; if the sweeper then fails to offer one, the walk over pending sandboxes finds it.
-- The lease itself stays: a holder that renews late puts it into the index again.
-- KEYS  1 leases (sorted set, by deadline)  2 pending (sorted set)  3 paused (set)
-- ARGV  1 how many leases to look at
-- Reply {key, …}   the longest expired first
--- @include now.lua
local now = redisNow()
local expired = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[1])
if #expired == 0 then
  return {}
end
redis.call('ZREM', KEYS[1], unpack(expired))
local pending = redis.call('ZMSCORE', KEYS[2], unpack(expired))
local found = {}
for index, key in ipairs(expired) do
  if pending[index] and redis.call('SISMEMBER', KEYS[3], string.match(key, '^[^.]+')) == 0 then
    found[#found + 1] = key
  end
end
return found
