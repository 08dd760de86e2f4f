#!lua flags=allow-oom
-- Notes in a batch that one of its jobs has ended, or that all its orders are in. The last of these ends the batch.
-- KEYS  1 batch (hash)  2 done (string of bits)  3 ends (list)  4 refused (hash)  5 open batches (sorted set)
--       6 owners of webhooks to call (sorted set)
-- ARGV  1 batch id  2 now, epoch ms  3 ms it is kept after its end  4 index of the job, '' for none  5 its sandbox key, '' if it was refused
--       6 '1': it failed  7 how many orders there are in all, '' if not known yet
-- Reply {'gone'}    there is no such batch
--       {'noted'}
--       {'known'}   it was noted before
--       {'over'}    noted, and the batch is over
if redis.call('EXISTS', KEYS[1]) == 0 then
  return {'gone'}
end
local reply = 'noted'
if ARGV[4] ~= '' then
  if redis.call('SETBIT', KEYS[2], ARGV[4], 1) == 1 then
    reply = 'known'
  else
    redis.call('RPUSH', KEYS[3], ARGV[4] .. ' ' .. ARGV[5])
    redis.call('HINCRBY', KEYS[1], 'finished', 1)
    if ARGV[6] == '1' then
      redis.call('HINCRBY', KEYS[1], 'failed', 1)
    end
  end
end
if ARGV[7] ~= '' then
  redis.call('HSETNX', KEYS[1], 'total', ARGV[7])
  if redis.call('HGET', KEYS[1], 'state') == 'uploading' then
    redis.call('HSET', KEYS[1], 'state', 'running')
  end
end
local batch = redis.call('HMGET', KEYS[1], 'state', 'total', 'finished', 'webhook', 'owner')
if batch[1] == 'finished' or not batch[2] or tonumber(batch[3] or '0') < tonumber(batch[2]) then
  return {reply}
end
redis.call('HSET', KEYS[1], 'state', 'finished', 'finishedAtMs', ARGV[2])
redis.call('ZREM', KEYS[5], ARGV[1])
redis.call('ZREM', string.format('@batchesOpenOf', batch[5] or ''), ARGV[1])
for index = 1, 4 do
  redis.call('PEXPIRE', KEYS[index], ARGV[3])
end
if batch[4] then
  local owner = batch[5] or ''
  redis.call('ZADD', string.format('@webhooksOf', owner), ARGV[2], ARGV[1])
  redis.call('ZADD', KEYS[6], 'LT', ARGV[2], owner)
end
return {'over'}
