#!lua flags=allow-oom
-- On a cluster: takes a lease that was given up out of the index, unless a later holder has put its own in.
-- KEYS  1 leases (sorted set)
-- ARGV  1 sandbox key  2 the lease's deadline when it was given up
-- Reply 1 or 0, whether it was taken out
local deadline = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not deadline or tonumber(deadline) > tonumber(ARGV[2]) then
  return 0
end
return redis.call('ZREM', KEYS[1], ARGV[1])
