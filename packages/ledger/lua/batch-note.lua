#!lua flags=allow-oom
-- Sets fields of a batch. Does not recreate one that has expired: the new hash would have no expiry.
-- KEYS  1 batch (hash)
-- ARGV  1 a field  2 its value  3, 4 the next ones, and so on
-- Reply 1 noted  0 there is no such batch
if redis.call('EXISTS', KEYS[1]) == 0 then
  return 0
end
redis.call('HSET', KEYS[1], unpack(ARGV))
return 1
