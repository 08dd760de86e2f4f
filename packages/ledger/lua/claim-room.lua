#!lua flags=allow-oom
-- How many sandboxes a worker gives up for the offers of one target. Workers that make room for the same offers subtract each other's, and
-- of the busy sandboxes of all workers those go first whose tenants hold the most.
-- KEYS  1 room being made (hash, process to `<lately> <all> <until> <counts>`)
-- ARGV  1 process of the worker  2 offers that wait  3 its sandboxes that make room, asked lately  4 all of those
--       5 its idle sandboxes that could  6 ms for which its claim is valid  7 '1' if its busy sandboxes go now, '0' if at a later look
--       8 how many sandboxes the tenant of each of its busy ones holds, that one and those before it taken off, the most first:
--         `7,6,1`, '' for none
-- Reply {idle, busy}   how many of either it gives up now; of the busy ones the first
--- @include now.lua
local own, now = ARGV[1], redisNow()
local waiting, ownLately, ownAll = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local lately, all = ownLately, ownAll
local others = {}
local claims = redis.call('HGETALL', KEYS[1])
for index = 1, #claims, 2 do
  local theirLately, theirAll, untilMs, counts = string.match(claims[index + 1], '^(%d+) (%d+) (%d+) ([%d,]*)$')
  if tonumber(untilMs) < now then
    redis.call('HDEL', KEYS[1], claims[index])
  elseif claims[index] ~= own then
    lately, all = lately + theirLately, all + theirAll
    for count in string.gmatch(counts, '%d+') do
      others[#others + 1] = tonumber(count)
    end
  end
end
-- A busy sandbox may take long to make room. Idle ones do not wait for it, other busy ones do.
local idle = math.max(0, math.min(waiting - lately, tonumber(ARGV[5])))
local needed = waiting - all - idle
local busy, left = 0, {}
for count in string.gmatch(ARGV[8], '%d+') do
  local before = busy
  for _, other in ipairs(others) do
    if other > tonumber(count) then
      before = before + 1
    end
  end
  if ARGV[7] == '1' and #left == 0 and before < needed then
    busy = busy + 1
  else
    left[#left + 1] = count
  end
end
local given = idle + busy
if ownAll + given + #left == 0 then
  redis.call('HDEL', KEYS[1], own)
else
  local untilMs = now + tonumber(ARGV[6])
  local claim = string.format('%d %d %d %s', ownLately + given, ownAll + given, untilMs, table.concat(left, ','))
  redis.call('HSET', KEYS[1], own, claim)
  redis.call('PEXPIRE', KEYS[1], 60000)
end
return {idle, busy}
