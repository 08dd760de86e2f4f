#!lua flags=allow-oom
-- Removes the staged request of a refused job, unless an accepted job of that id needs it.
-- KEYS  1 staged (string)
-- ARGV  1 job id  2 sandbox key  3 the job's tenant
-- Reply 1 removed, 0 not
--- @include tenant-jobs.lua
if redis.call('PTTL', KEYS[1]) < 0 then
  return 0
end
redis.call('ZREM', ofTenant('@stagedOf', ARGV[2], ARGV[3]), ARGV[1] .. ' ' .. redis.call('STRLEN', KEYS[1]))
return redis.call('UNLINK', KEYS[1])
