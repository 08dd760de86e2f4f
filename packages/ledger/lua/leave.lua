#!lua flags=allow-oom
-- Removes the record of a worker that stops, unless another process has claimed its id.
-- KEYS  1 worker (hash)  2 workers (sorted set)
-- ARGV  1 worker id  2 instance
-- Reply 1 removed, 0 another process has the id
if redis.call('HGET', KEYS[1], 'instance') ~= ARGV[2] then
  return 0
end
redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[1])
return 1
