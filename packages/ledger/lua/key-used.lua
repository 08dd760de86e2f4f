#!lua flags=allow-oom
-- Notes when a key was last used. Only on a key that is there: a revoked one must not come back as a stump.
-- KEYS  1 key (hash)
-- ARGV  1 now, epoch milliseconds
-- Reply 1 noted, 0 there is no such key
if redis.call('EXISTS', KEYS[1]) == 0 then
  return 0
end
redis.call('HSET', KEYS[1], 'usedAtMs', ARGV[1])
return 1
