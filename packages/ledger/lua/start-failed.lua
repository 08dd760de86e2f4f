#!lua flags=allow-oom
-- Notes that a worker could not start a sandbox, and reads which others failed lately. Only the holder asks.
-- KEYS  1 lease (hash)
-- ARGV  1 worker  2 ms for which a failure counts
-- Reply {worker, …}   this one included
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local known = cjson.decode(redis.call('HGET', KEYS[1], 'failed') or '{}')
known[ARGV[1]] = now
local workers = {}
for worker, at in pairs(known) do
  if at > now - tonumber(ARGV[2]) then
    workers[#workers + 1] = worker
  else
    known[worker] = nil
  end
end
redis.call('HSET', KEYS[1], 'failed', cjson.encode(known))
return workers
