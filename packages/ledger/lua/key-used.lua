#!lua flags=allow-oom
-- Notes when a key was last used. Does not recreate a revoked key as a hash with this field only.
-- KEYS  1 key (hash)
-- ARGV  1 now, epoch milliseconds
-- Reply 1 noted, 0 there is no such key
if redis.call('EXISTS', KEYS[1]) == 0 then
  return 0
end
redis.call('HSET', KEYS[1], 'usedAtMs', ARGV[1])
return 1
