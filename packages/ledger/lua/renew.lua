#!lua flags=allow-oom
-- Extends one process's leases. A late renewal is accepted while no other process took the lease: otherwise a short outage would
-- move every tenant to another worker.
-- KEYS  1… leases (hashes)
-- ARGV  1 instance  2 length in ms  3… sandbox key, epoch, tenant of each lease, and the bytes that its workspace has, as
--       workspaces.lua reads them, '' if they were not measured yet
-- Reply for each lease, in the same order:
--       {'renewed', deadline}
--       {'paused', deadline}   renewed; the tenant is paused, and the holder should give the sandbox up. On a cluster the caller has to
--                              look for that, and to write the index of leases
--       {'lost', epoch}        another process holds it, or it was released
--- @include now.lua
--- @include fenced.lua
--- @include elsewhere.lua
--- @include workspaces.lua
local instance, deadline = ARGV[1], redisNow() + tonumber(ARGV[2])
local replies, tenants, moved = {}, {}, {}
for index = 1, #KEYS do
  local first = 4 * index - 1
  local key, epoch = ARGV[first], ARGV[first + 1]
  tenants[#tenants + 1] = ARGV[first + 2]
  local highest = fencedBy(KEYS[index], epoch, instance)
  if highest then
    replies[#replies + 1] = {'lost', highest}
  else
    redis.call('HSET', KEYS[index], 'deadline', deadline)
    noteWorkspace(KEYS[index], key, ARGV[first + 3])
    moved[#moved + 1] = deadline
    moved[#moved + 1] = key
    replies[#replies + 1] = {'renewed', deadline}
  end
end
if isCluster then
  return replies
end
if #moved > 0 then
  redis.call('ZADD', '@leases', unpack(moved))
end
for index, isPaused in ipairs(redis.call('SMISMEMBER', '@paused', unpack(tenants))) do
  if isPaused == 1 and replies[index][1] == 'renewed' then
    replies[index][1] = 'paused'
  end
end
return replies
