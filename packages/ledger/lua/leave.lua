#!lua flags=allow-oom
-- Forgets a worker that stops, unless another process speaks for it by now.
-- KEYS  1 worker (hash)  2 workers (sorted set)
-- ARGV  1 worker id  2 instance
-- Reply 1 forgotten, 0 not its to forget
if redis.call('HGET', KEYS[1], 'instance') ~= ARGV[2] then
  return 0
end
redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[1])
return 1
