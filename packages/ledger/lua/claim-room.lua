#!lua flags=allow-oom
-- How many sandboxes a worker gives up for the offers of one place. Workers that make room for the same offers subtract each other's.
-- KEYS  1 room being made (hash, process to `<lately> <all> <until>`)
-- ARGV  1 process of the worker  2 offers that wait  3 its sandboxes that make room, asked lately  4 all of those
--       5 its idle sandboxes that could  6 its busy ones that could  7 ms for which its word is good
-- Reply {idle, busy}   how many of either it gives up now
--- @include now.lua
local own, now = ARGV[1], redisNow()
local waiting, ownLately, ownAll = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local lately, all = ownLately, ownAll
local said = redis.call('HGETALL', KEYS[1])
for index = 1, #said, 2 do
  local theirLately, theirAll, untilMs = string.match(said[index + 1], '^(%d+) (%d+) (%d+)$')
  if tonumber(untilMs) < now then
    redis.call('HDEL', KEYS[1], said[index])
  elseif said[index] ~= own then
    lately, all = lately + theirLately, all + theirAll
  end
end
-- A busy sandbox may take long to make room. Idle ones do not wait for it, other busy ones do.
local idle = math.max(0, math.min(waiting - lately, tonumber(ARGV[5])))
local busy = math.max(0, math.min(waiting - all - idle, tonumber(ARGV[6])))
local given = idle + busy
if ownAll + given == 0 then
  redis.call('HDEL', KEYS[1], own)
else
  local untilMs = now + tonumber(ARGV[7])
  redis.call('HSET', KEYS[1], own, string.format('%d %d %d', ownLately + given, ownAll + given, untilMs))
  redis.call('PEXPIRE', KEYS[1], 60000)
end
return {idle, busy}
