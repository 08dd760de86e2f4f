#!lua flags=allow-oom
-- Adds to a job's events if the publisher holds the sandbox. Nothing follows a terminal record.
-- KEYS  1 lease (hash)  2 events (stream)  3 results (stream)  4 inbox (stream)  5 job (hash)  6 unfinished (sorted set)  7 staged (string)
--       8 the attempt's entry in the queue (hash)
-- ARGV  1 epoch  2 instance  3 sandbox key  4 job id  5 ms the records of a job that has ended are kept  6 '1': there is an inbox
--       7 how the job ended, '' if it did not  8 which part of the output this is, '' if none
--       9 mark for the entry: the outcome, or 'retrying'; '' if the attempt has not ended  10… type, data, type, data …
-- Reply {1, id}      added; the last one's id
--       {0, epoch}   another process holds the sandbox: nothing was added
--       {2, id}      the job has its terminal record already: nothing was added
local held = redis.call('HMGET', KEYS[1], 'worker', 'epoch', 'instance')
if held[2] ~= ARGV[1] or held[3] ~= ARGV[2] or not held[1] or held[1] == '' then
  return {0, tonumber(held[2] or '0')}
end
local last = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)
if #last > 0 and last[1][2][2] == 'finished' then
  return {2, last[1][1]}
end
local id = ''
-- Said before by the same holder, whose answer was lost on the way.
if #last > 0 and ARGV[8] ~= '' and last[1][2][6] == ARGV[8] then
  return {1, last[1][1]}
end
if ARGV[9] ~= '' and redis.call('EXISTS', KEYS[8]) == 1 then
  local ended = redis.call('HGET', KEYS[8], 'ended')
  if ended and ended ~= 'retrying' then
    return {2, ''}
  end
  -- Decides for as long as the entry is in the queue, which may be longer than the records below are kept.
  redis.call('HSET', KEYS[8], 'ended', ARGV[9])
end
for index = 10, #ARGV, 2 do
  id = redis.call('XADD', KEYS[2], '*', 't', ARGV[index], 'd', ARGV[index + 1], 'p', ARGV[8])
  if ARGV[index] == 'finished' then
    redis.call('XADD', KEYS[3], 'MAXLEN', '~', 100000, '*', 'job', ARGV[4], 'key', ARGV[3], 'd', ARGV[index + 1])
    if ARGV[6] == '1' then
      redis.call('XADD', KEYS[4], 'MAXLEN', '~', 100000, '*', 'job', ARGV[4], 'd', ARGV[index + 1])
      redis.call('PEXPIRE', KEYS[4], ARGV[5])
    end
    redis.call('HSET', KEYS[5], 'key', ARGV[3], 'outcome', ARGV[7])
    redis.call('PEXPIRE', KEYS[5], ARGV[5])
    redis.call('PEXPIRE', KEYS[2], ARGV[5])
    redis.call('ZREM', KEYS[6], ARGV[4])
    redis.call('UNLINK', KEYS[7])
  end
end
return {1, id}
