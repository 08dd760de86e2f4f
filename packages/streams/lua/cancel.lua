-- Ends a job that nobody has begun, for whoever wants it cancelled. No epoch is compared, since nobody speaks for the sandbox here:
-- what is compared is what begin.lua compares, so of a beginning and this end only the first happens.
-- KEYS  1 events (stream)  2 results (stream)  3 inbox (stream)  4 job (hash)  5 unfinished (sorted set)  6 staged (string)
-- ARGV  1 sandbox key  2 job id  3 attempt that waits  4 ms its end is remembered  5 ms the inbox is kept, '' if there is none
--       6 how it ended  7 data of the event  8 ms a staged request is kept for whoever is about to read it
-- Reply 1   its end is told
--       2   its end was told before
--       0   it has begun, or is not known: whoever holds its sandbox tells of it
local known = redis.call('HMGET', KEYS[4], 'key', 'begun', 'outcome')
if known[3] then
  return 2
end
if known[1] ~= ARGV[1] or tonumber(known[2] or '0') >= tonumber(ARGV[3]) then
  return 0
end
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
if #last > 0 and last[1][2][2] == 'finished' then
  return 2
end
-- Between attempts it has not begun either.
if #last > 0 and last[1][2][2] ~= 'retrying' then
  return 0
end
redis.call('XADD', KEYS[1], '*', 't', 'finished', 'd', ARGV[7], 'p', '')
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('XADD', KEYS[2], 'MAXLEN', '~', 100000, '*', 'job', ARGV[2], 'key', ARGV[1], 'd', ARGV[7])
if ARGV[5] ~= '' then
  redis.call('XADD', KEYS[3], 'MAXLEN', '~', 100000, '*', 'job', ARGV[2], 'd', ARGV[7])
  redis.call('PEXPIRE', KEYS[3], ARGV[5])
end
redis.call('HSET', KEYS[4], 'outcome', ARGV[6])
redis.call('PEXPIRE', KEYS[4], ARGV[4])
redis.call('ZREM', KEYS[5], ARGV[2])
redis.call('PEXPIRE', KEYS[6], ARGV[8])
return 1
