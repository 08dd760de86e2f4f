-- Takes a sandbox's lease if nobody else's is live.
-- KEYS  1 lease (hash)  2 leases (sorted set, by deadline)  3 paused (set)  4 sandboxes (sorted set)
-- ARGV  1 sandbox key  2 worker id  3 instance of that worker  4 length in ms  5 tenant
--       6 host whose disk will have the workspace, '' where storage is shared
-- Reply {1, epoch, deadline}           taken; the epoch is one more than ever before
--       {0, epoch, deadline, worker}   somebody else's is live
--       {2, home}                      the workspace is on another host
--       {3}                            the tenant is paused
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local held = redis.call('HMGET', KEYS[1], 'worker', 'instance', 'epoch', 'deadline', 'home')
local epoch = tonumber(held[3] or '0')
local deadline = tonumber(held[4] or '0')
-- A worker that restarted is a new instance of the same worker: what the old one held is its to take again.
if held[1] and held[1] ~= '' and held[1] ~= ARGV[2] and deadline > now then
  return {0, epoch, deadline, held[1]}
end
if held[5] and held[5] ~= ARGV[6] then
  return {2, held[5]}
end
if redis.call('SISMEMBER', KEYS[3], ARGV[5]) == 1 then
  return {3}
end
epoch = epoch + 1
deadline = now + tonumber(ARGV[4])
redis.call('HSET', KEYS[1], 'worker', ARGV[2], 'instance', ARGV[3], 'epoch', epoch, 'deadline', deadline)
if ARGV[6] ~= '' then
  redis.call('HSET', KEYS[1], 'home', ARGV[6])
end
redis.call('ZADD', KEYS[2], deadline, ARGV[1])
redis.call('ZADD', KEYS[4], now, ARGV[1])
return {1, epoch, deadline}
