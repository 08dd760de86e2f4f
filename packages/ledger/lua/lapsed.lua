#!lua flags=allow-oom
-- Removes expired leases from the index of leases, and names the sandboxes among them that have work: what a dead worker held. Each
-- is named once, so many of them hide no others; the walk over pending sandboxes finds what its sweeper failed to offer. The lease
-- itself is not touched: a holder that renews late is in the index again.
-- KEYS  1 leases (sorted set, by deadline)  2 pending (sorted set)  3 paused (set)
-- ARGV  1 how many leases to look at
-- Reply {key, …}   the longest expired first
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
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
