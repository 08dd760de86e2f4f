#!lua flags=allow-oom
-- Adds to a job's events if the publisher holds the sandbox. Nothing follows a terminal record. An attempt that ends leaves its queue
-- in the same step, unless its holder has something to do first: then its entry is marked, and the holder completes it.
-- KEYS  1 lease (hash)  2 events (stream)  3 results (stream)  4 inbox (stream)  5 job (hash)  6 unfinished (sorted set)  7 staged (string)
--       8 the attempt's entry (hash)  9 active (list)  10 completed (sorted set)
-- ARGV  1 epoch  2 instance  3 sandbox key  4 job id  5 ms the records of a job that has ended are kept  6 '1': there is an inbox
--       7 how the job ended, '' if it did not  8 which part of the output this is, '' if none
--       9 mark for the entry: the outcome, or 'retrying'; '' if the attempt has not ended
--       10 its id in the queue if it leaves now, '' if it stays  11 what the keys of entries begin with  12 how many entries are kept
--       13 excerpt of the result for results and inbox, '' if the whole of it goes there
--       14… type, data, type, data …
-- Reply {'published'}
--       {'fenced', epoch}     another process holds the sandbox: nothing was added
--       {'finished-before'}   the job has its terminal record already: nothing was added
--- @include now.lua
--- @include fenced.lua
--- @include leave-queue.lua
local events, entry, part, mark, leaving, excerpt = KEYS[2], KEYS[8], ARGV[8], ARGV[9], ARGV[10], ARGV[13]
local epoch = fencedBy(KEYS[1], ARGV[1], ARGV[2])
if epoch then
  return {'fenced', epoch}
end
local function leave()
  if leaving ~= '' then
    leaveQueue(KEYS[9], KEYS[10], ARGV[11], leaving, redisNow(), tonumber(ARGV[12]))
  end
end
local last = redis.call('XREVRANGE', events, '+', '-', 'COUNT', 1)
if #last > 0 and last[1][2][2] == 'finished' then
  leave()
  return {'finished-before'}
end
-- Published before by the same holder, whose answer was lost on the way.
if #last > 0 and part ~= '' and last[1][2][6] == part then
  leave()
  return {'published'}
end
if mark ~= '' and redis.call('EXISTS', entry) == 1 then
  local ended = redis.call('HGET', entry, 'ended')
  if ended and ended ~= 'retrying' then
    leave()
    return {'finished-before'}
  end
  -- Decides for as long as the entry is in the queue, which may be longer than the records below are kept.
  redis.call('HSET', entry, 'ended', mark)
end
for index = 14, #ARGV, 2 do
  redis.call('XADD', events, '*', 't', ARGV[index], 'd', ARGV[index + 1], 'p', part)
  if ARGV[index] == 'finished' then
    local field, shown = 'd', ARGV[index + 1]
    if excerpt ~= '' then
      field, shown = 'excerpt', excerpt
    end
    redis.call('XADD', KEYS[3], 'MAXLEN', '~', 100000, '*', 'job', ARGV[4], 'key', ARGV[3], field, shown)
    if ARGV[6] == '1' then
      redis.call('XADD', KEYS[4], 'MAXLEN', '~', 100000, '*', 'job', ARGV[4], field, shown, 'key', ARGV[3])
      redis.call('PEXPIRE', KEYS[4], ARGV[5])
    end
    redis.call('HSET', KEYS[5], 'key', ARGV[3], 'outcome', ARGV[7])
    redis.call('PEXPIRE', KEYS[5], ARGV[5])
    redis.call('PEXPIRE', events, ARGV[5])
    redis.call('ZREM', KEYS[6], ARGV[4])
    redis.call('UNLINK', KEYS[7])
  end
end
leave()
return {'published'}
