#!lua flags=allow-oom
-- Moves the deadlines of one process's leases on. Late is fine while nobody has taken a lease: a short outage must not move every
-- tenant.
-- KEYS  1 leases (sorted set, by deadline)  2 paused (set)  3… leases (hashes)
-- ARGV  1 instance  2 length in ms  3… sandbox key, epoch, tenant of each lease
-- Reply for each lease, in the same order:
--       {'renewed', deadline}
--       {'paused', deadline}   renewed; the tenant is paused, and the holder should give the sandbox up
--       {'lost', epoch}        another process holds it, or it was released
--- @include now.lua
--- @include fenced.lua
local instance, deadline = ARGV[1], redisNow() + tonumber(ARGV[2])
local replies, tenants, moved = {}, {}, {}
for index = 3, #KEYS do
  local first = 3 * index - 6
  local key, epoch = ARGV[first], ARGV[first + 1]
  tenants[#tenants + 1] = ARGV[first + 2]
  local highest = fencedBy(KEYS[index], epoch, instance)
  if highest then
    replies[#replies + 1] = {'lost', highest}
  else
    redis.call('HSET', KEYS[index], 'deadline', deadline)
    moved[#moved + 1] = deadline
    moved[#moved + 1] = key
    replies[#replies + 1] = {'renewed', deadline}
  end
end
if #moved > 0 then
  redis.call('ZADD', KEYS[1], unpack(moved))
end
for index, isPaused in ipairs(redis.call('SMISMEMBER', KEYS[2], unpack(tenants))) do
  if isPaused == 1 and replies[index][1] == 'renewed' then
    replies[index][1] = 'paused'
  end
end
return replies
