#!lua
-- Makes a batch, unless it is there.
-- KEYS  1 batch (hash)  2 batches (sorted set)  3 open batches (sorted set)  4 the owner's batches (sorted set)
--       5 the owner's open batches (sorted set)  6 calls of the owner's webhooks that wait (sorted set)
-- ARGV  1 batch id  2 now, epoch ms  3 owner  4 webhook, '' for none  5 ms it is kept while it is open  6 how many are listed
--       7 how many of the owner are listed  8 most open batches of the owner, 0 for any number
--       9 most such calls, 0 for any number
-- Reply {'made'}
--       {'known'}                 it was there
--       {'full', ceiling, used}   the owner has as many as it may
local id, now, most = ARGV[1], ARGV[2], tonumber(ARGV[8])
if redis.call('HEXISTS', KEYS[1], 'state') == 1 then
  return {'known'}
end
local isFull = most > 0 and redis.call('ZCARD', KEYS[5]) >= most
-- Those whose records have expired. While there is room a look at the oldest is enough to keep them from piling up.
for _, open in ipairs(redis.call('ZRANGE', KEYS[5], 0, isFull and -1 or 9)) do
  if redis.call('EXISTS', string.format('@batch', open)) == 0 then
    redis.call('ZREM', KEYS[5], open)
  end
end
local open = redis.call('ZCARD', KEYS[5])
if most > 0 and open >= most then
  return {'full', 'batches', open}
end
if ARGV[4] ~= '' and tonumber(ARGV[9]) > 0 then
  local calls = redis.call('ZCARD', KEYS[6])
  if calls >= tonumber(ARGV[9]) then
    return {'full', 'webhooks', calls}
  end
end
redis.call('HSET', KEYS[1], 'createdAtMs', now, 'owner', ARGV[3], 'state', 'uploading')
if ARGV[4] ~= '' then
  redis.call('HSET', KEYS[1], 'webhook', ARGV[4])
end
redis.call('PEXPIRE', KEYS[1], ARGV[5])
redis.call('ZADD', KEYS[2], now, id)
redis.call('ZREMRANGEBYRANK', KEYS[2], 0, -tonumber(ARGV[6]) - 1)
redis.call('ZADD', KEYS[4], now, id)
redis.call('ZREMRANGEBYRANK', KEYS[4], 0, -tonumber(ARGV[7]) - 1)
redis.call('ZADD', KEYS[3], now, id)
redis.call('ZADD', KEYS[5], now, id)
return {'made'}
