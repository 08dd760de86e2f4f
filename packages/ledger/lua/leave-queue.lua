-- Takes an attempt out of its sandbox's queue and keeps its entry for Bull Board, which shows the last `kept`.
-- `prefix`: what the keys of entries begin with
local function leaveQueue(active, completed, prefix, queuedId, now, kept)
  if redis.call('LREM', active, -1, queuedId) == 0 then
    return
  end
  local entry = prefix .. queuedId
  if redis.call('EXISTS', entry) == 0 then
    return
  end
  redis.call('HSET', entry, 'finishedOn', now, 'returnvalue', '"done"', 'atm', 1)
  redis.call('ZADD', completed, now, queuedId)
  local over = redis.call('ZCARD', completed) - kept
  if over > 0 then
    local oldest = redis.call('ZPOPMIN', completed, over)
    for index = 1, #oldest, 2 do
      redis.call('UNLINK', prefix .. oldest[index])
    end
  end
end
