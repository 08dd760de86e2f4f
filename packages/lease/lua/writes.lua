-- Since when Redis has written for everybody: since it started, or since it last refused a write because of its disk (MISCONF).
-- It counts those refusals itself. Every heartbeat and every take comes here, so the time is right within a heartbeat.
local function writesSince(key, now)
  local info = redis.call('INFO', 'server', 'errorstats')
  local run, refused = string.match(info, 'run_id:(%x+)'), string.match(info, 'errorstat_MISCONF:count=(%d+)')
  local seen = (run or '') .. ' ' .. (refused or '0')
  local known = redis.call('HMGET', key, 'seen', 'since')
  if known[1] == seen then
    return tonumber(known[2])
  end
  redis.call('HSET', key, 'seen', seen, 'since', now)
  return now
end
