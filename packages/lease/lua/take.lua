-- Takes a sandbox's lease if nobody else's is live.
-- KEYS  1 lease (hash)  2 leases (sorted set, by deadline)
-- ARGV  1 sandbox key  2 worker id  3 instance of that worker  4 length in ms
-- Reply {1, epoch, deadline}           taken; the epoch is one more than ever before
--       {0, epoch, deadline, worker}   somebody else's is live
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local held = redis.call('HMGET', KEYS[1], 'worker', 'instance', 'epoch', 'deadline')
local epoch = tonumber(held[3] or '0')
local deadline = tonumber(held[4] or '0')
-- A worker that restarted is a new instance of the same worker: what the old one held is its to take again.
if held[1] and held[1] ~= '' and held[1] ~= ARGV[2] and deadline > now then
  return {0, epoch, deadline, held[1]}
end
epoch = epoch + 1
deadline = now + tonumber(ARGV[4])
redis.call('HSET', KEYS[1], 'worker', ARGV[2], 'instance', ARGV[3], 'epoch', epoch, 'deadline', deadline)
redis.call('ZADD', KEYS[2], deadline, ARGV[1])
return {1, epoch, deadline}
