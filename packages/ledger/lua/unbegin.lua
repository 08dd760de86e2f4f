#!lua flags=allow-oom
-- Takes the record back that a job began: the holder that wrote it handed nothing to the sandbox. The lease is not compared: only that
-- holder could have started the job, even if another one holds the sandbox now.
-- KEYS  1 events (stream)  2 job (hash)
-- ARGV  1 epoch  2 worker  3 attempt  4… if there are any: takes, in one of which it has to have begun
-- Reply 1   taken back
--       0   it was not the last thing recorded: nothing was changed
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 2)
if #last == 0 or last[1][2][2] ~= 'started' then
  return 0
end
local started = cjson.decode(last[1][2][4])
if tostring(started.epoch) ~= ARGV[1] or started.worker ~= ARGV[2] or tostring(started.attempt) ~= ARGV[3] then
  return 0
end
if ARGV[4] then
  local part, isOne = redis.call('HGET', KEYS[2], 'part'), false
  for index = 4, #ARGV do
    isOne = isOne or ARGV[index] == part
  end
  if not isOne then
    return 0
  end
end
if #last == 1 then
  redis.call('DEL', KEYS[1])
else
  redis.call('XDEL', KEYS[1], last[1][1])
end
redis.call('HDEL', KEYS[2], 'epoch')
-- If an earlier holder began it too, it still counts as begun.
if #last == 1 or last[2][2][2] == 'retrying' then
  redis.call('HSET', KEYS[2], 'begun', tonumber(ARGV[3]) - 1)
end
return 1
