#!lua
-- Adds a tenant's snapshot under a name, within the tenant's ceilings. Only for the holder of the sandbox whose files it has.
-- KEYS  1 snapshots (hash)  2 dropped (set)  3 lease (hash)
-- ARGV  1 name  2 snapshot as JSON  3 epoch  4 instance  5 job id  6 '1' to take the place of one of that name  7 tenant
--       8 default ceilings as JSON  9 '1': only look whether it could be added
--       10 on a cluster: {ceilings} as JSON, what this script reads of other slots elsewhere
-- Reply {'made'}             or it could be made
--       {'exists', snapshot}  there is one of that name; of the same job, if the job ran before
--       {'fenced', epoch}     another process holds the sandbox
--       {'tenant-full', ceiling, used, limit}
--- @include now.lua
--- @include fenced.lua
--- @include elsewhere.lua
--- @include ceilings.lua
local now = redisNow()
local epoch = fencedBy(KEYS[3], ARGV[3], ARGV[4])
if epoch then
  return {'fenced', epoch}
end
local before = redis.call('HGET', KEYS[1], ARGV[1])
local count, bytes = 0, 0
local all = redis.call('HGETALL', KEYS[1])
for index = 1, #all, 2 do
  local one = cjson.decode(all[index + 1])
  if one.expiresAtMs and one.expiresAtMs <= now then
    redis.call('HDEL', KEYS[1], all[index])
    redis.call('SADD', KEYS[2], one.id)
    if all[index] == ARGV[1] then
      before = false
    end
  elseif all[index] ~= ARGV[1] then
    count = count + 1
    bytes = bytes + one.size
  end
end
local old = before and cjson.decode(before)
if old and (ARGV[6] ~= '1' or old.jobId == ARGV[5]) then
  return {'exists', before}
end
local facts = isCluster and cjson.decode(ARGV[10]).ceilings or layersWithCeilings(ARGV[7])
local limits = ceilingsIn(ARGV[8], facts)
local full = pastCeiling(limits, 'snapshots', count, 1)
  or pastCeiling(limits, 'snapshotBytes', bytes, cjson.decode(ARGV[2]).size)
if full then
  return full
end
if ARGV[9] ~= '1' then
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
  if old then
    redis.call('SADD', KEYS[2], old.id)
  end
end
return {'made'}
