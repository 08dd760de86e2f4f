#!lua flags=allow-oom
-- Notes that a delayed job was accepted, for the order of jobs that are due at the same time.
-- KEYS  1 due order (sorted set)
-- ARGV  1 job id  2 due time in ms  3 ms by Redis' clock until which the note is kept at least
-- Reply 1
local time = redis.call('TIME')
redis.call('ZADD', KEYS[1], ARGV[2], string.format('%d%06d:%s', time[1], time[2], ARGV[1]))
if tonumber(ARGV[3]) > redis.call('PEXPIRETIME', KEYS[1]) then
  redis.call('PEXPIREAT', KEYS[1], ARGV[3])
end
return 1
