#!lua flags=allow-oom
-- Takes a sandbox's lease unless another process has a live one.
-- KEYS  1 lease (hash)  2 writes (hash)
-- ARGV  1 sandbox key  2 worker id  3 instance of that worker  4 length in ms  5 tenant
--       6 host whose disk would have the workspace, '' where storage is shared; started.lua makes it the sandbox's home
--       7 an instance of that worker on this machine that is known to be dead, '' for none
--       8 an epoch that a container of that worker obeys, 0 for none: a Redis that was restored may know only lower ones
--       9 ms for which a holder goes on while Redis refuses to write
--       10 default ceilings as JSON
--       11 on a cluster: {instance, paused, ceilings} as JSON, what this script reads of other slots elsewhere
-- Reply {'taken', epoch, deadline}       the epoch is higher than ever before
--       {'inherited', epoch, deadline}   taken from a dead process before its deadline
--       {'held', worker}                 another process's lease is live, or it may still renew: Redis refused writes or restarted a
--                                        moment ago
--       {'elsewhere', home}              the workspace is on another host
--       {'paused'}                       the tenant is paused
--       {'tenant-full', ceiling, held, limit}   workers hold as many of the tenant's sandboxes as it may have
--       {'replaced', instance}           another process has claimed this worker id
--- @include now.lua
--- @include writes.lua
--- @include elsewhere.lua
--- @include still.lua
--- @include tenant-jobs.lua
--- @include ceilings.lua
--- @include held.lua
refuseWhileMoving(ARGV[1])
local facts
if isCluster then
  facts = cjson.decode(ARGV[11])
else
  facts = {
    instance = redis.call('HGET', string.format('@worker', ARGV[2]), 'instance'),
    paused = redis.call('SISMEMBER', '@paused', ARGV[5]) == 1,
    ceilings = layersWithCeilings(ARGV[5]),
  }
end
local claimedBy = facts.instance
if claimedBy and claimedBy ~= ARGV[3] then
  return {'replaced', claimedBy}
end
local now = redisNow()
local held = redis.call('HMGET', KEYS[1], 'worker', 'instance', 'epoch', 'deadline', 'home', 'length', 'inherited')
local epoch = tonumber(held[3] or '0')
local deadline = tonumber(held[4] or '0')
-- This worker may take at once what a dead process of it held. A process that merely does not answer may act until the deadline.
local live = held[1] and held[1] ~= '' and deadline > now
local own = held[1] == ARGV[2] and (held[2] == ARGV[3] or held[2] == ARGV[7])
if live and not own then
  return {'held', held[1]}
end
local since, restarted = writesSince(KEYS[2], now)
-- A holder whose renewal Redis refused goes on, and counts its lease from that refusal.
if held[1] and held[1] ~= '' and not own and now <= deadline + tonumber(ARGV[9]) then
  if now < since + tonumber(held[6] or ARGV[4]) then
    return {'held', held[1]}
  end
end
-- A Redis that restarted may have forgotten a holder, also one that took the sandbox from this worker. That holder stops at its next
-- renewal that is not refused, or when its lease is over.
local length = tonumber(ARGV[4])
if restarted > 0 and now <= restarted + length + tonumber(ARGV[9]) and now < since + length then
  return {'held', held[1] or ''}
end
if held[5] and held[5] ~= ARGV[6] then
  return {'elsewhere', held[5]}
end
if facts.paused then
  return {'paused'}
end
local full = not live and heldFull(ARGV[1], ARGV[5], ceilingsIn(ARGV[10], facts.ceilings), now)
if full then
  return full
end
-- At least the clock, so that a Redis which lost its last writes gives no epoch twice.
epoch = math.max(epoch + 1, tonumber(ARGV[8]) + 1, now)
deadline = now + tonumber(ARGV[4])
redis.call('HSET', KEYS[1], 'worker', ARGV[2], 'instance', ARGV[3], 'epoch', epoch, 'deadline', deadline, 'length', ARGV[4])
redis.call('ZADD', string.format('@heldOf', ARGV[5]), now, ARGV[1])
elsewhere('ZADD', '@leases', 'GT', deadline, ARGV[1])
elsewhere('ZADD', '@sandboxes', now, ARGV[1])
post(ARGV[1])
-- Recorded while the lease runs: if the answer is lost, the worker repeats the call.
if live and (held[2] ~= ARGV[3] or held[7]) then
  redis.call('HSET', KEYS[1], 'inherited', 1)
  return {'inherited', epoch, deadline}
end
redis.call('HDEL', KEYS[1], 'inherited')
return {'taken', epoch, deadline}
