#!lua flags=allow-oom
-- Moves a lease's deadline on. Late is fine while nobody has taken it: a short outage must not move every tenant.
-- KEYS  1 lease (hash)  2 leases (sorted set, by deadline)  3 paused (set)
-- ARGV  1 sandbox key  2 epoch  3 instance  4 length in ms  5 tenant
-- Reply {1, deadline, paused}   renewed; paused is 1 when the tenant is, and the holder should give the sandbox up
--       {0, epoch}              another process holds it, or it was released
local held = redis.call('HMGET', KEYS[1], 'worker', 'epoch', 'instance')
if held[2] ~= ARGV[2] or held[3] ~= ARGV[3] or not held[1] or held[1] == '' then
  return {0, tonumber(held[2] or '0')}
end
local time = redis.call('TIME')
local deadline = time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(ARGV[4])
redis.call('HSET', KEYS[1], 'deadline', deadline)
redis.call('ZADD', KEYS[2], deadline, ARGV[1])
return {1, deadline, redis.call('SISMEMBER', KEYS[3], ARGV[5])}
