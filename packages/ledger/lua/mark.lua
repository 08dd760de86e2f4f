#!lua flags=allow-oom
-- Says that a sandbox has a job, and reads who holds it: what a producer does after adding one. Never refused for want of memory: a
-- job that is in its queue will run, so that it must be marked.
-- KEYS  1 lease (hash)  2 pending (sorted set, by when it was marked)  3 paused (set)  4 sandboxes (sorted set)  5 queues (sorted set)
--       6 job (hash)  7 unfinished (sorted set)  8 staged (string)  9 settings (hash)  10 the job's entry in its queue (hash)
--       11… lists and sorted sets of the sandbox's queue
-- ARGV  1 sandbox key  2 whose sandbox it is  3 job id  4 attempt  5 pool  6 session  7 kind  8 default limit per sandbox  9 default limit of the fleet
--       10 the job's own tenant: of the shared sandbox, another than whose it is  11 '1': mark only what has its entry, or has ended
-- Reply {}   nothing was marked: adding the job to its queue was refused, or has not happened yet
--       {live, epoch, deadline, worker, paused, home, pool, room}
--       live is 1 while somebody's lease is; room is how many more jobs may be added before a limit is reached
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ended = redis.call('HEXISTS', KEYS[6], 'outcome') == 1
if ARGV[11] == '1' and not ended and redis.call('EXISTS', KEYS[10]) == 0 then
  return {}
end
redis.call('ZADD', KEYS[2], 'NX', now, ARGV[1])
redis.call('ZADD', KEYS[4], now, ARGV[1])
redis.call('ZADD', KEYS[5], now, ARGV[1])
redis.call('HSET', KEYS[6], 'key', ARGV[1], 'tenant', ARGV[10], 'session', ARGV[6], 'kind', ARGV[7])
redis.call('HSETNX', KEYS[6], 'at', now)
-- A job that ended before its producer came here is known from now on, and not made unfinished again.
if not ended then
  redis.call('HSET', KEYS[6], 'added', ARGV[4])
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
local waiting = 0
for index = 11, #KEYS do
  local kind = redis.call('TYPE', KEYS[index]).ok
  if kind == 'list' then
    waiting = waiting + redis.call('LLEN', KEYS[index])
  elseif kind == 'zset' then
    waiting = waiting + redis.call('ZCARD', KEYS[index])
  end
end
local limits = redis.call('HMGET', KEYS[9], 'maxWaitingPerSandbox', 'maxWaitingInFleet')
local room = math.min(
  tonumber(limits[1] or ARGV[8]) - waiting,
  tonumber(limits[2] or ARGV[9]) - redis.call('ZCARD', KEYS[7])
)
return {live, tonumber(held[2] or '0'), deadline, worker, paused, held[4] or '', held[5], math.max(0, room)}
