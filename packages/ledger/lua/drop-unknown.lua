#!lua flags=allow-oom
-- Takes a job of which no record is left out of the unfinished: it cannot be said whose it was.
-- KEYS  1 job (hash)  2 unfinished (sorted set)
-- ARGV  1 job id
-- Reply 1   dropped
--       0   it has a record
if redis.call('EXISTS', KEYS[1]) == 1 then
  return 0
end
redis.call('ZREM', KEYS[2], ARGV[1])
return 1
