-- Says that a sandbox has work, and reads who holds it: what a producer needs to know after adding a job.
-- KEYS  1 lease (hash)  2 pending (sorted set, by when it was marked)
-- ARGV  1 sandbox key
-- Reply {live, epoch, deadline, worker}   live is 1 while somebody's lease is
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[2], 'NX', now, ARGV[1])
local held = redis.call('HMGET', KEYS[1], 'worker', 'epoch', 'deadline')
local worker = held[1] or ''
local deadline = tonumber(held[3] or '0')
local live = 0
if worker ~= '' and deadline > now then
  live = 1
end
return {live, tonumber(held[2] or '0'), deadline, worker}
