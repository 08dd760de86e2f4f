-- Adds to a job's events if the publisher's epoch is the one that holds the sandbox. Nothing follows a terminal record.
-- KEYS  1 lease (hash)  2 events (stream)  3 results (stream)  4 inbox (stream)  5 job (hash)  6 unfinished (sorted set)  7 staged (string)
-- ARGV  1 epoch  2 sandbox key  3 job id  4 ms the events are kept  5 '1': there is an inbox  6 how the job ended, '' if it did not
--       7 which part of the output this is, '' if none  8… type, data, type, data …
-- Reply {1, id}      added; the last one's id
--       {0, epoch}   another epoch holds the sandbox: nothing was added
--       {2, id}      the job has its terminal record already: nothing was added
local held = redis.call('HMGET', KEYS[1], 'worker', 'epoch')
if held[2] ~= ARGV[1] or not held[1] or held[1] == '' then
  return {0, tonumber(held[2] or '0')}
end
local last = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)
if #last > 0 and last[1][2][2] == 'finished' then
  return {2, last[1][1]}
end
local id = ''
-- Said before by the same holder, whose answer was lost on the way.
if #last > 0 and ARGV[7] ~= '' and last[1][2][6] == ARGV[7] then
  return {1, last[1][1]}
end
for index = 8, #ARGV, 2 do
  id = redis.call('XADD', KEYS[2], '*', 't', ARGV[index], 'd', ARGV[index + 1], 'p', ARGV[7])
  if ARGV[index] == 'finished' then
    redis.call('XADD', KEYS[3], 'MAXLEN', '~', 100000, '*', 'job', ARGV[3], 'key', ARGV[2], 'd', ARGV[index + 1])
    if ARGV[5] == '1' then
      redis.call('XADD', KEYS[4], 'MAXLEN', '~', 100000, '*', 'job', ARGV[3], 'd', ARGV[index + 1])
      redis.call('PEXPIRE', KEYS[4], ARGV[4])
    end
    redis.call('HSET', KEYS[5], 'key', ARGV[2], 'outcome', ARGV[6])
    redis.call('PEXPIRE', KEYS[5], ARGV[4])
    redis.call('ZREM', KEYS[6], ARGV[3])
    redis.call('UNLINK', KEYS[7])
  end
end
redis.call('PEXPIRE', KEYS[2], ARGV[4])
return {1, id}
