-- Two times that decide who may take a lease. Every heartbeat and every take comes here, so both are right within a heartbeat.
-- 1. Since when Redis has accepted all writes: since it started, or since it last refused a write because of its disk (MISCONF).
--    It counts those refusals itself.
-- 2. When Redis was first seen to be another process than before, 0 if never: it restarted, and may have lost its last second.
local function writesSince(key, now)
  local info = redis.call('INFO', 'server', 'errorstats')
  local run = string.match(info, 'run_id:(%x+)') or ''
  local refused = string.match(info, 'errorstat_MISCONF:count=(%d+)') or '0'
  local known = redis.call('HMGET', key, 'run', 'refused', 'since', 'restarted')
  if known[1] == run and known[2] == refused then
    return tonumber(known[3]), tonumber(known[4])
  end
  local restarted = tonumber(known[4] or '0')
  if known[1] and known[1] ~= run then
    restarted = now
  end
  redis.call('HSET', key, 'run', run, 'refused', refused, 'since', now, 'restarted', restarted)
  return now, restarted
end
