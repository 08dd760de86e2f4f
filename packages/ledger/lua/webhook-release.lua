#!lua flags=allow-oom
-- Ends the hold on an owner whose claimed calls have been made: its other calls may be claimed.
-- KEYS  1 owners with calls (sorted set by when their next is due)  2 the owner's calls (sorted set by when)  3 hold (string)
-- ARGV  1 owner
-- Reply 1
redis.call('DEL', KEYS[3])
local first = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
if first[2] then
  redis.call('ZADD', KEYS[1], first[2], ARGV[1])
else
  redis.call('ZREM', KEYS[1], ARGV[1])
end
return 1
