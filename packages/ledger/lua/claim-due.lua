#!lua flags=allow-oom
-- Claims the due members of a sorted set: moves their due time ahead, so that no other process claims them before then. If the claimer
-- dies, another process claims them after that time.
-- KEYS  1 things to do (sorted set by when)
-- ARGV  1 now, epoch ms  2 when others may take it, epoch ms  3 how many at most
-- Reply the members taken
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[3])
for _, member in ipairs(due) do
  redis.call('ZADD', KEYS[1], 'XX', ARGV[2], member)
end
return due
