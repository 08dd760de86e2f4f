#!lua flags=allow-oom
-- Takes an attempt whose end is recorded out of its sandbox's queue.
-- KEYS  1 lease (hash)  2 active (list)  3 completed (sorted set)  4 failed (sorted set)
-- ARGV  1 epoch  2 instance  3 its id in the queue  4 what the keys of entries begin with  5 how many entries are kept  6 sandbox key
-- Reply {'fenced', epoch}   another process holds the sandbox: nothing was changed
--       {'completed'}       it is not in the queue any more
--- @include now.lua
--- @include fenced.lua
--- @include board-entry.lua
--- @include leave-queue.lua
--- @include elsewhere.lua
--- @include still.lua
local queuedId, prefix = ARGV[3], ARGV[4]
refuseWhileMoving(ARGV[6])
local epoch = fencedBy(KEYS[1], ARGV[1], ARGV[2])
if epoch then
  return {'fenced', epoch}
end
local board = {completed = KEYS[3], failed = KEYS[4], prefix = prefix, now = redisNow(), keptEntries = tonumber(ARGV[5])}
leaveQueue(KEYS[2], board, queuedId, redis.call('HMGET', prefix .. queuedId, 'timestamp', 'failedReason'))
writeBoard(board, {})
return {'completed'}
