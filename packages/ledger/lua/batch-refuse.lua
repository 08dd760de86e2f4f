#!lua flags=allow-oom
-- Notes why an order of a batch was not accepted, and counts it once.
-- KEYS  1 batch (hash)  2 refused (hash)
-- ARGV  1 index of the order  2 what was wrong
-- Reply 1 noted  0 it was noted before, or there is no such batch
local left = redis.call('PTTL', KEYS[1])
if left == -2 or redis.call('HSETNX', KEYS[2], ARGV[1], ARGV[2]) == 0 then
  return 0
end
if left >= 0 and redis.call('PTTL', KEYS[2]) < left then
  redis.call('PEXPIRE', KEYS[2], left)
end
redis.call('HINCRBY', KEYS[1], 'refused', 1)
return 1
