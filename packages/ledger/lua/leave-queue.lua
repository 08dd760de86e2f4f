-- Takes an attempt out of its sandbox's queue and lists its entry for Bull Board. Needs board-entry.lua.
-- `known`: `timestamp` and `failedReason` of its entry
local function leaveQueue(active, board, queuedId, known)
  if redis.call('LREM', active, -1, queuedId) == 1 and known[1] then
    listEntry(board, queuedId, known[2])
  end
  -- A Redis that lost its last second may have restored earlier attempts. They would run again once the job's record has expired.
  local jobId, attempt = string.match(queuedId, '^([^~]+)~(%d+)$')
  for earlier = 1, tonumber(attempt or '1') - 1 do
    local id = earlier == 1 and jobId or jobId .. '~' .. earlier
    if redis.call('LREM', active, -1, id) == 1 then
      listEntry(board, id, true)
    end
  end
end
