#!lua
-- Adds a job to its sandbox's queue, in BullMQ's own layout so that Bull Board shows it, and marks the sandbox as having work. All of
-- it or nothing: a Redis without memory refuses the script before its first line.
-- KEYS  1 job (hash)  2 lease (hash)  3 the tenant's sandboxes (sorted set)  4 staged (string)  5 the job's entry (hash)
--       6 completed (sorted set)  7 failed (sorted set)  8 priority counter (string)
--       9 wait (list)  10 active (list)  11 prioritized (sorted set)  12 paused jobs (list)
-- ARGV  1 sandbox key  2 whose sandbox it is  3 job id  4 attempt  5 pool, '' for any  6 default pool  7 session  8 kind
--       9 default limit per sandbox  10 default limit of the fleet  11 the job's own tenant: of the shared sandbox, another than 2
--       12 its id in the queue  13 data of the entry  14 options of the entry  15 priority  16 when it was submitted, in ms
--       17 default ceilings as JSON  18 mark of what it asks for, '' for a later attempt  19 '1' if its request is staged
--       20 what the keys of entries begin with  21 ms the records of a job that has ended are kept
--       22 given names of the job as JSON, '' for none  23 those of them that the sandbox has
--       24 '1' if it may fill the workspace  then what facts.lua needs
-- Reply {'added', live, paused, home, pool, at}   live is 1 while a worker's lease is; home is '' while there is none; at: when the job
--       was accepted, 0 if not by this call
--       or a refusal of admission.lua
--- @include now.lua
--- @include elsewhere.lua
--- @include still.lua
--- @include tenant-jobs.lua
--- @include ceilings.lua
--- @include usage.lua
--- @include result-bytes.lua
--- @include workspaces.lua
--- @include facts.lua
--- @include queue-length.lua
--- @include nearly-full.lua
--- @include admission.lua
--- @include writes.lua
--- @include drop-expired.lua
local record, lease, entry = KEYS[1], KEYS[2], KEYS[5]
local key, jobId, attempt, queuedId, priority = ARGV[1], ARGV[3], tonumber(ARGV[4]), ARGV[12], tonumber(ARGV[15])
refuseWhileMoving(key)
local facts = fleetFacts(jobId, ARGV[2], ARGV[11])
local held = redis.call('HMGET', lease, 'worker', 'deadline', 'home', 'pool', 'instance', 'used')
local isStaged = ARGV[19] == '1'
local bytes = #ARGV[13] + (isStaged and redis.call('STRLEN', KEYS[4]) or 0)
local wanted = {
  key = key, jobId = jobId, attempt = attempt, pool = ARGV[5], tenant = ARGV[11], bytes = bytes,
  mostPerSandbox = ARGV[9], mostInFleet = ARGV[10], ceilings = ARGV[17], sandboxes = KEYS[3], asks = ARGV[18], fills = ARGV[24] == '1',
}
local no, known = refusal(record, held[4], 9, wanted, facts)
if no then
  return no
end
-- An entry that outlived the job's record: if its job has ended, the new one replaces it; otherwise it is this very job.
if redis.call('EXISTS', entry) == 1 then
  if redis.call('ZREM', KEYS[6], queuedId) + redis.call('ZREM', KEYS[7], queuedId) == 0 then
    return {'known', key}
  end
  redis.call('DEL', entry)
end
local now = redisNow()
-- Recorded before the tenant's first take: if the primary dies with that take, the next primary sees by this that it is another process.
local writes = isCluster and string.format('@slotWrites', ARGV[2])
if writes and redis.call('EXISTS', writes) == 0 then
  writesSince(writes, now)
end
redis.call('HSET', entry, 'name', ARGV[8], 'data', ARGV[13], 'opts', ARGV[14], 'timestamp', ARGV[16], 'delay', 0, 'priority', priority)
if priority > 0 then
  -- As BullMQ: by priority, then by when it was added.
  redis.call('ZADD', KEYS[11], priority * 0x100000000 + redis.call('INCR', KEYS[8]) % 0x100000000, queuedId)
else
  redis.call('LPUSH', KEYS[9], queuedId)
end
local about = {'key', key, 'tenant', ARGV[11], 'session', ARGV[7], 'kind', ARGV[8], 'added', attempt}
if ARGV[18] ~= '' then
  about[11], about[12] = 'asks', ARGV[18]
end
if ARGV[22] ~= '' then
  about[#about + 1], about[#about + 2] = 'names', ARGV[22]
end
-- None of these expires before the job has ended.
if known then
  redis.call('HSET', record, unpack(about))
  redis.call('HSETNX', record, 'at', now)
  redis.call('PERSIST', record)
  uncountDelayed(key, ARGV[11], jobId, redis.call('HGET', record, 'delayed'))
  if redis.call('HSETNX', record, 'bytes', bytes) == 0 then
    bytes = 0
  end
else
  redis.call('HSET', record, 'at', now, 'bytes', bytes, unpack(about))
end
if isStaged then
  redis.call('PERSIST', KEYS[4])
  redis.call('ZREM', ofTenant('@stagedOf', key, ARGV[11]), jobId .. ' ' .. redis.call('STRLEN', KEYS[4]))
end
countJob(key, ARGV[11], jobId, now, bytes)
elsewhere('SET', string.format('@sandboxOf', jobId), key)
elsewhere('ZADD', '@unfinished', 'NX', now, jobId)
elsewhere('ZADD', '@pending', 'NX', now, key)
local pool = held[4]
if not pool then
  pool = ARGV[5] == '' and ARGV[6] or ARGV[5]
  redis.call('HSET', lease, 'pool', pool)
end
-- Updated at most once a minute.
if not held[6] or now - tonumber(held[6]) >= 60000 then
  redis.call('HSET', lease, 'used', now)
  if ARGV[23] ~= '' then
    redis.call('HSET', lease, 'names', ARGV[23])
  end
  redis.call('ZADD', KEYS[3], now, key)
  elsewhere('ZADD', '@sandboxes', now, key)
  elsewhere('ZADD', '@queues', now, key)
  dropExpired({KEYS[6], KEYS[7]}, ARGV[20], now - tonumber(ARGV[21]))
end
local live = 0
if held[1] and held[1] ~= '' and tonumber(held[2] or '0') > now then
  live = 1
  -- The holder pops this key for all its sandboxes. If it misses a wake-up, it looks at its queue within a lease.
  local wake = string.format('@wake', held[5])
  elsewhere('ZADD', wake, now, key)
  elsewhere('PEXPIRE', wake, 3600000)
end
post(key)
return {'added', live, facts.paused, held[3] or '', pool, known and 0 or now}
