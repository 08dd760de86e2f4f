#!lua
-- Replaces what is known of one schedule, if nobody changed it since it was read.
-- KEYS  1 schedules (hash)  2 schedules-due (sorted set, by when each is to be looked at)
-- ARGV  1 schedule id  2 what it was, '' if there was none  3 what it becomes, '' to remove it  4 when to look at it, '' for never
-- Reply 1   replaced
--       0   it is another by now: nothing was changed
if (redis.call('HGET', KEYS[1], ARGV[1]) or '') ~= ARGV[2] then
  return 0
end
if ARGV[3] == '' then
  redis.call('HDEL', KEYS[1], ARGV[1])
else
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
end
if ARGV[4] == '' then
  redis.call('ZREM', KEYS[2], ARGV[1])
else
  redis.call('ZADD', KEYS[2], ARGV[4], ARGV[1])
end
return 1
