#!lua flags=allow-oom
-- Gives a lease up. The epoch stays, so that the next one is higher.
-- KEYS  1 lease (hash)  2… lists and sorted sets of the sandbox's queue
-- ARGV  1 sandbox key  2 epoch  3 instance  4 '1': only if the queue is empty  5 bytes in its workspace, as workspaces.lua
--       reads them, '' if they were not measured yet
-- Reply {'released', left, deadline}   left is how many jobs the queue still has, and the sandbox stays pending if it is not 0
--       {'kept', left}       the queue has jobs
--       {'lost', epoch}      another process holds it, or it was released already
--- @include fenced.lua
--- @include queue-length.lua
--- @include elsewhere.lua
--- @include workspaces.lua
local highest = fencedBy(KEYS[1], ARGV[2], ARGV[3])
if highest then
  return {'lost', highest}
end
local left = queueLength(KEYS, 2)
if left > 0 and ARGV[4] == '1' then
  return {'kept', left}
end
local deadline = tonumber(redis.call('HGET', KEYS[1], 'deadline') or '0')
redis.call('ZREM', string.format('@heldOf', string.match(ARGV[1], '^[^.]+')), ARGV[1])
noteWorkspace(KEYS[1], ARGV[1], ARGV[5])
redis.call('HSET', KEYS[1], 'worker', '', 'instance', '', 'deadline', 0)
-- On a cluster the caller does this, after it has checked for a new holder and for new jobs.
if not isCluster then
  redis.call('ZREM', '@leases', ARGV[1])
  if left == 0 then
    redis.call('ZREM', '@pending', ARGV[1])
  end
end
return {'released', left, deadline}
