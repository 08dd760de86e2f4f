-- Says that a sandbox has a job, and reads who holds it: what a producer does after adding one.
-- KEYS  1 lease (hash)  2 pending (sorted set, by when it was marked)  3 paused (set)  4 sandboxes (sorted set)  5 queues (sorted set)
--       6 job (hash)  7 unfinished (sorted set)  8 staged (string)
-- ARGV  1 sandbox key  2 tenant  3 job id  4 attempt  5 pool
-- Reply {live, epoch, deadline, worker, paused, home, pool}   live is 1 while somebody's lease is
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[2], 'NX', now, ARGV[1])
redis.call('ZADD', KEYS[4], now, ARGV[1])
redis.call('ZADD', KEYS[5], now, ARGV[1])
-- A job that ended before its producer came here is not made unfinished again.
if redis.call('HEXISTS', KEYS[6], 'outcome') == 0 then
  redis.call('HSET', KEYS[6], 'key', ARGV[1], 'added', ARGV[4])
  redis.call('PERSIST', KEYS[6])
  redis.call('ZADD', KEYS[7], 'NX', now, ARGV[3])
  redis.call('PERSIST', KEYS[8])
end
redis.call('HSETNX', KEYS[1], 'pool', ARGV[5])
local held = redis.call('HMGET', KEYS[1], 'worker', 'epoch', 'deadline', 'home', 'pool')
local worker = held[1] or ''
local deadline = tonumber(held[3] or '0')
local live = 0
if worker ~= '' and deadline > now then
  live = 1
end
local paused = redis.call('SISMEMBER', KEYS[3], ARGV[2])
return {live, tonumber(held[2] or '0'), deadline, worker, paused, held[4] or '', held[5]}
