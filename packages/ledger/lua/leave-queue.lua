-- Takes an attempt out of its sandbox's queue and lists its entry for Bull Board. Needs board-entry.lua.
-- `known`: `timestamp` and `failedReason` of its entry
local function leaveQueue(active, board, queuedId, known)
  if redis.call('LREM', active, -1, queuedId) == 1 and known[1] then
    listEntry(board, queuedId, known[2])
  end
end
