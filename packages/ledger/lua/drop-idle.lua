#!lua flags=allow-oom
-- Removes a sandbox that has neither jobs nor a live holder from the pending ones: its last job was cancelled, or its holder died idle.
-- KEYS  1 lease (hash)  2… lists and sorted sets of the sandbox's queue
-- ARGV  1 sandbox key
-- Reply 1   it is not pending any more; on a cluster: its caller has to take it out
--       0   it has jobs or a holder: nothing was changed
--- @include now.lua
--- @include elsewhere.lua
local held = redis.call('HMGET', KEYS[1], 'worker', 'deadline')
if held[1] and held[1] ~= '' and tonumber(held[2] or '0') > redisNow() then
  return 0
end
for index = 2, #KEYS do
  if redis.call('EXISTS', KEYS[index]) == 1 then
    return 0
  end
end
if not isCluster then
  redis.call('ZREM', '@pending', ARGV[1])
end
return 1
