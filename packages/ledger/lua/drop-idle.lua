#!lua flags=allow-oom
-- Takes a sandbox without jobs and without a live holder out of the pending ones: its last job was cancelled, or its holder died idle.
-- KEYS  1 lease (hash)  2 pending (sorted set)  3… lists and sorted sets of the sandbox's queue
-- ARGV  1 sandbox key
-- Reply 1   it is not pending any more
--       0   it has jobs or a holder: nothing was changed
local held = redis.call('HMGET', KEYS[1], 'worker', 'deadline')
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if held[1] and held[1] ~= '' and tonumber(held[2] or '0') > now then
  return 0
end
for index = 3, #KEYS do
  if redis.call('EXISTS', KEYS[index]) == 1 then
    return 0
  end
end
redis.call('ZREM', KEYS[2], ARGV[1])
return 1
