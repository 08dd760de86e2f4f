-- What Bull Board shows of attempts that ended: those with a reason as failed, all others as completed.
-- `board`: {completed, failed, prefix (what the keys of entries begin with), now, keptEntries (of each of the two)}

-- Writes into an entry how its attempt ended. `shown`: {mark, returned, reason}; reason is '' for a success.
local function markEntry(entry, queuedId, now, shown)
  local fields = {
    'ended', shown.mark, 'returnvalue', shown.returned, 'finishedOn', now, 'atm', string.match(queuedId, '~(%d+)$') or 1,
  }
  if shown.reason ~= '' then
    fields[9], fields[10] = 'failedReason', shown.reason
  end
  redis.call('HSET', entry, unpack(fields))
end

-- Lists an entry that has left its queue.
local function listEntry(board, queuedId, isFailed)
  local list = isFailed and board.failed or board.completed
  redis.call('ZADD', list, board.now, queuedId)
  local over = redis.call('ZCARD', list) - board.keptEntries
  if over > 0 then
    local oldest = redis.call('ZPOPMIN', list, over)
    for index = 1, #oldest, 2 do
      redis.call('UNLINK', board.prefix .. oldest[index])
    end
  end
end

-- Drops entries of attempts that ended so long ago that the jobs' events have expired, a few at a time.
local function dropExpired(board, keptMs)
  for _, list in ipairs({board.completed, board.failed}) do
    for _, queuedId in ipairs(redis.call('ZRANGEBYSCORE', list, '-inf', board.now - keptMs, 'LIMIT', 0, 20)) do
      redis.call('ZREM', list, queuedId)
      redis.call('UNLINK', board.prefix .. queuedId)
    end
  end
end
