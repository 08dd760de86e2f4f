#!lua flags=allow-oom
-- Records that a job begins, unless something forbids it.
-- KEYS  1 lease (hash)  2 events (stream)  3 cancelled (set)  4 what is taken from the sandbox's queue (list, the last taken first)
--       5 job (hash)  6 the job's entry in the queue (hash)
-- ARGV  1 epoch  2 instance  3 job id  4 latest time by Redis' clock: the deadline that the holder knows of  5 data of the event
--       6 attempt  7 its id in the queue  8… ids in the queue of jobs taken before it that its holder knows of
-- Reply {1}          begun
--       {0, epoch}   another process holds the sandbox
--       {2}          the job has its terminal record already, or this attempt has ended and another follows
--       {3}          somebody wants it cancelled
--       {4}          it is not taken from the queue any more, or one is that was taken before it and nobody runs
--       {5}          too late: the holder has to renew its lease first
local held = redis.call('HMGET', KEYS[1], 'worker', 'epoch', 'instance')
if held[2] ~= ARGV[1] or held[3] ~= ARGV[2] or not held[1] or held[1] == '' then
  return {0, tonumber(held[2] or '0')}
end
-- The entry's own mark outlives the events and the job's record, which expire.
if redis.call('HEXISTS', KEYS[6], 'ended') == 1 then
  return {2}
end
local last = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)
if #last > 0 and last[1][2][2] == 'finished' then
  return {2}
end
if #last > 0 and last[1][2][2] == 'retrying' and cjson.decode(last[1][2][4]).attempt >= tonumber(ARGV[6]) then
  return {2}
end
-- An earlier attempt whose end was told and that is still in the queue.
if tonumber(redis.call('HGET', KEYS[5], 'begun') or '0') > tonumber(ARGV[6]) then
  return {2}
end
-- Said before by the same holder, whose answer was lost on the way.
if #last > 0 and last[1][2][2] == 'started' then
  local said = cjson.decode(last[1][2][4])
  if tostring(said.epoch) == ARGV[1] and tostring(said.attempt) == ARGV[6] then
    return {1}
  end
end
-- A call that a frozen Redis carries out late comes from a holder that has given up: the job would count as begun and never run.
local time = redis.call('TIME')
if time[1] * 1000 + math.floor(time[2] / 1000) > tonumber(ARGV[4]) then
  return {5}
end
if redis.call('HEXISTS', KEYS[5], 'cancel') == 1 or redis.call('SISMEMBER', KEYS[3], ARGV[3]) == 1 then
  return {3}
end
-- A worker that lost the lease, or an answer that was lost, may have taken one: it must not be overtaken by its own session.
local known = {}
for index = 8, #ARGV do
  known[ARGV[index]] = true
end
local taken = redis.call('LRANGE', KEYS[4], 0, -1)
local place = #taken
while place > 0 and known[taken[place]] do
  place = place - 1
end
if place == 0 or taken[place] ~= ARGV[7] then
  return {4}
end
redis.call('XADD', KEYS[2], '*', 't', 'started', 'd', ARGV[5])
redis.call('HSET', KEYS[5], 'begun', ARGV[6])
-- Neither expires before the job has ended: they are what keeps it from beginning a second time.
redis.call('PERSIST', KEYS[2])
redis.call('PERSIST', KEYS[5])
return {1}
