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

-- Notes an entry that has left its queue, for `writeBoard`.
local function listEntry(board, queuedId, isFailed)
  local list = isFailed and board.failed or board.completed
  board.left = board.left or {}
  board.left[list] = board.left[list] or {}
  local left = board.left[list]
  left[#left + 1] = board.now
  left[#left + 1] = queuedId
end

-- Lists all those entries, and unlinks the oldest beyond those kept. `gone`: keys to unlink in the same call.
local function writeBoard(board, gone)
  for list, left in pairs(board.left or {}) do
    redis.call('ZADD', list, unpack(left))
    local over = redis.call('ZCARD', list) - board.keptEntries
    local oldest = over > 0 and redis.call('ZPOPMIN', list, over) or {}
    for index = 1, #oldest, 2 do
      gone[#gone + 1] = board.prefix .. oldest[index]
    end
  end
  if #gone > 0 then
    redis.call('UNLINK', unpack(gone))
  end
end
