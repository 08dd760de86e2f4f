-- Asks whether a job may be added to its sandbox's queue, and notes which sandbox its id belongs to.
-- KEYS  1 job (hash)  2 unfinished (sorted set)  3 settings (hash)  4 lease (hash)  5 the tenant's sandboxes (sorted set)
--       6… lists and sorted sets of the sandbox's queue
-- ARGV  1 sandbox key  2 tenant  3 session  4 kind  5 attempt  6 pool  7 default limit per sandbox  8 default limit of the fleet
--       9 ms after which an acceptance that nothing followed is forgotten
-- Reply {1}                   add it
--       {2, key}              known: this attempt was added before, the job has ended, or the id belongs to another sandbox
--       {3, waiting, limit}   too many wait in the sandbox
--       {4, waiting, limit}   too many wait in the fleet
--       {5, pool}             the sandbox lives in another pool
local known = redis.call('HMGET', KEYS[1], 'key', 'added', 'outcome')
if known[1] and (known[1] ~= ARGV[1] or known[3] or tonumber(known[2] or '0') >= tonumber(ARGV[5])) then
  return {2, known[1]}
end
local pool = redis.call('HGET', KEYS[4], 'pool')
if pool and ARGV[6] ~= '' and pool ~= ARGV[6] then
  return {5, pool}
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if not known[1] then
  local limits = redis.call('HMGET', KEYS[3], 'maxWaitingPerSandbox', 'maxWaitingInFleet')
  local fleet = redis.call('ZCARD', KEYS[2])
  local most = tonumber(limits[2] or ARGV[8])
  if fleet >= most then
    return {4, fleet, most}
  end
  local waiting = 0
  for index = 6, #KEYS do
    local kind = redis.call('TYPE', KEYS[index]).ok
    if kind == 'list' then
      waiting = waiting + redis.call('LLEN', KEYS[index])
    elseif kind == 'zset' then
      waiting = waiting + redis.call('ZCARD', KEYS[index])
    end
  end
  most = tonumber(limits[1] or ARGV[7])
  if waiting >= most then
    return {3, waiting, most}
  end
  redis.call('HSET', KEYS[1], 'key', ARGV[1], 'tenant', ARGV[2], 'session', ARGV[3], 'kind', ARGV[4], 'at', now)
  redis.call('PEXPIRE', KEYS[1], ARGV[9])
end
-- Every sandbox's first job comes here, so none is missing.
redis.call('ZADD', KEYS[5], now, ARGV[1])
return {1}
