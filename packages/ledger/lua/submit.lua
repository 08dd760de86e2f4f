#!lua
-- Adds a job to its sandbox's queue, in BullMQ's own layout so that Bull Board shows it, and marks the sandbox as having work. All of
-- it or nothing: a Redis without memory refuses the script before its first line.
-- KEYS  1 job (hash)  2 unfinished (sorted set)  3 settings (hash)  4 lease (hash)  5 the tenant's sandboxes (sorted set)
--       6 pending (sorted set, by when it was marked)  7 paused (set)  8 sandboxes (sorted set)  9 queues (sorted set)
--       10 staged (string)  11 the job's entry (hash)  12 completed (sorted set)  13 failed (sorted set)  14 priority counter (string)
--       15 wait (list)  16 active (list)  17 prioritized (sorted set)  18 paused jobs (list)
-- ARGV  1 sandbox key  2 whose sandbox it is  3 job id  4 attempt  5 pool, '' for any  6 default pool  7 session  8 kind
--       9 default limit per sandbox  10 default limit of the fleet  11 the job's own tenant: of the shared sandbox, another than 2
--       12 its id in the queue  13 data of the entry  14 options of the entry  15 priority  16 when it was submitted, in ms
--       17 default limit of bytes per tenant
-- Reply {'added', live, paused, home, pool}   live is 1 while a worker's lease is; home is '' while there is none
--       or a refusal of admission.lua
--- @include now.lua
--- @include queue-length.lua
--- @include nearly-full.lua
--- @include waiting-bytes.lua
--- @include admission.lua
local record, unfinished, lease, entry = KEYS[1], KEYS[2], KEYS[4], KEYS[11]
local wait, prioritized = KEYS[15], KEYS[17]
local key, jobId, attempt, queuedId, priority = ARGV[1], ARGV[3], tonumber(ARGV[4]), ARGV[12], tonumber(ARGV[15])
local bytes = #ARGV[13] + redis.call('STRLEN', KEYS[10])
local wanted = {
  key = key, attempt = attempt, pool = ARGV[5], tenant = ARGV[11], bytes = bytes,
  mostPerSandbox = ARGV[9], mostInFleet = ARGV[10], mostBytes = ARGV[17],
}
local no = refusal(record, unfinished, KEYS[3], lease, 15, wanted)
if no then
  return no
end
-- An entry that outlived the job's record: of a job that has ended it goes, any other is this very job.
if redis.call('EXISTS', entry) == 1 then
  if redis.call('ZREM', KEYS[12], queuedId) + redis.call('ZREM', KEYS[13], queuedId) == 0 then
    return {'known', key}
  end
  redis.call('DEL', entry)
end
local now = redisNow()
redis.call('HSET', entry, 'name', ARGV[8], 'data', ARGV[13], 'opts', ARGV[14], 'timestamp', ARGV[16], 'delay', 0, 'priority', priority)
if priority > 0 then
  -- As BullMQ: by priority, then by when it was added.
  redis.call('ZADD', prioritized, priority * 0x100000000 + redis.call('INCR', KEYS[14]) % 0x100000000, queuedId)
else
  redis.call('LPUSH', wait, queuedId)
end
redis.call('HSET', record, 'key', key, 'tenant', ARGV[11], 'session', ARGV[7], 'kind', ARGV[8], 'added', attempt)
redis.call('HSETNX', record, 'at', now)
countBytes(record, ARGV[11], bytes)
-- Neither expires before the job has ended.
redis.call('PERSIST', record)
redis.call('PERSIST', KEYS[10])
redis.call('ZADD', unfinished, 'NX', now, jobId)
redis.call('ZADD', KEYS[6], 'NX', now, key)
for _, index in ipairs({5, 8, 9}) do
  redis.call('ZADD', KEYS[index], now, key)
end
local pool = ARGV[5]
if pool == '' then
  pool = ARGV[6]
end
redis.call('HSETNX', lease, 'pool', pool)
local held = redis.call('HMGET', lease, 'worker', 'deadline', 'home', 'pool', 'instance')
local live = 0
if held[1] and held[1] ~= '' and tonumber(held[2] or '0') > now then
  live = 1
  -- The holder listens there, for all its sandboxes. One that misses this looks at its queue within a lease.
  local wake = 'berth:wake:' .. held[5]
  redis.call('ZADD', wake, now, key)
  redis.call('PEXPIRE', wake, 3600000)
end
return {'added', live, redis.call('SISMEMBER', KEYS[7], ARGV[2]), held[3] or '', held[4]}
