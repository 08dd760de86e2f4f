#!lua
-- Makes a batch, unless it is there.
-- KEYS  1 batch (hash)  2 batches (sorted set)  3 open batches (sorted set)
-- ARGV  1 batch id  2 now, epoch ms  3 owner  4 webhook, '' for none  5 ms it is kept while it is open  6 how many are listed
-- Reply 1 made  0 it was there
if redis.call('HEXISTS', KEYS[1], 'state') == 1 then
  return 0
end
redis.call('HSET', KEYS[1], 'createdAtMs', ARGV[2], 'owner', ARGV[3], 'state', 'uploading')
if ARGV[4] ~= '' then
  redis.call('HSET', KEYS[1], 'webhook', ARGV[4])
end
redis.call('PEXPIRE', KEYS[1], ARGV[5])
redis.call('ZADD', KEYS[2], ARGV[2], ARGV[1])
redis.call('ZREMRANGEBYRANK', KEYS[2], 0, -tonumber(ARGV[6]) - 1)
redis.call('ZADD', KEYS[3], ARGV[2], ARGV[1])
return 1
