#!lua flags=allow-oom
-- Replaces one schedule's record by compare-and-swap: only if it is still as the caller read it.
-- KEYS  1 schedules (hash)  2 schedules-due (sorted set, by when each is to be looked at)  3 its tenant's schedules so far (set)
--       4 its tenant's schedules from now on (set)
-- ARGV  1 schedule id  2 what it was, '' if there was none  3 what it becomes, '' to remove it  4 when to look at it, '' for never
--       5 most schedules of the tenant, 0 for any number
-- Reply 1   replaced
--       0   it is another by now: nothing was changed
--       {'full', schedules}   the tenant has as many as it may: nothing was changed
local id, was, becomes, most = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[5])
if (redis.call('HGET', KEYS[1], id) or '') ~= was then
  return 0
end
local isNew = becomes ~= '' and (was == '' or KEYS[3] ~= KEYS[4])
if isNew and most > 0 and redis.call('SCARD', KEYS[4]) >= most then
  return {'full', redis.call('SCARD', KEYS[4])}
end
redis.call('SREM', KEYS[3], id)
if becomes == '' then
  redis.call('HDEL', KEYS[1], id)
else
  redis.call('HSET', KEYS[1], id, becomes)
  redis.call('SADD', KEYS[4], id)
end
if ARGV[4] == '' then
  redis.call('ZREM', KEYS[2], id)
else
  redis.call('ZADD', KEYS[2], ARGV[4], id)
end
return 1
